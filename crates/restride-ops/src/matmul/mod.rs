//! Matrix products: `mm`, `bmm`, `linear`, `matmul`, `einsum` and their like. Results are row-major.

mod chain;
mod composed;
mod einsum;
mod grad;
mod grouped;
mod packed;

use crate::support::promote;
use crate::support::scratch::{packed, stored};
use crate::support::strides::broadcast_sizes;
use crate::support::*;
use restride_ir::{Args, ByBatch, Call, DType, Meta, OpDef, OverlapCheck};
use restride_kernels::matmul::{self, Added};

fn matrix(t: &Meta, rank: usize, what: &str) -> Result<()> {
    ensure!(
        t.rank() == rank,
        "{what} must be a {}, got {}-D tensor",
        if rank == 2 { "matrix" } else { "3D tensor" },
        t.rank()
    );
    Ok(())
}

fn no_bool(name: &str, d: DType) -> Result<()> {
    ensure!(d != DType::Bool, "\"{name}\" not implemented for 'Bool'");
    Ok(())
}

fn same_dtype(a: &Meta, b: &Meta, what: &str) -> Result<()> {
    let show = |d: DType| promote::name(d).to_lowercase();
    ensure!(
        a.dtype == b.dtype,
        "expected {what} to have the same dtype, but got: {} != {}",
        show(a.dtype),
        show(b.dtype)
    );
    Ok(())
}

fn mm_meta(a: &Meta, b: &Meta) -> Result<Meta> {
    matrix(a, 2, "self")?;
    matrix(b, 2, "mat2")?;
    let (x, y) = (a.sizes(), b.sizes());
    ensure!(x[1] == y[0], "mat1 and mat2 shapes cannot be multiplied ({}x{} and {}x{})", x[0], x[1], y[0], y[1]);
    same_dtype(a, b, "m1 and m2")?;
    no_bool("addmm_impl_cpu_", a.dtype)?;
    Ok(fresh(a.dtype, &[x[0], y[1]]))
}

fn mm(a: &Args<'_, Meta>) -> Metas {
    one(mm_meta(a.tensor(0)?, a.tensor(1)?)?)
}

pub(crate) fn bmm_meta(a: &Meta, b: &Meta) -> Result<Meta> {
    matrix(a, 3, "batch1")?;
    matrix(b, 3, "batch2")?;
    let (x, y) = (a.sizes(), b.sizes());
    ensure!(
        x[0] == y[0] && x[2] == y[1],
        "Expected size for first two dimensions of batch2 tensor to be: [{}, {}] but got: [{}, {}].",
        x[0],
        x[2],
        y[0],
        y[1]
    );
    same_dtype(a, b, "batch1 and batch2")?;
    no_bool("bmm", a.dtype)?;
    Ok(fresh(a.dtype, &[x[0], x[1], y[2]]))
}

fn bmm(a: &Args<'_, Meta>) -> Metas {
    one(bmm_meta(a.tensor(0)?, a.tensor(1)?)?)
}

fn into(added: &Meta, out: Meta) -> Metas {
    ensure!(
        added.dtype == out.dtype,
        "self and mat2 must have the same dtype, but got {} and {}",
        promote::name(added.dtype),
        promote::name(out.dtype)
    );
    added.layout.expand(out.sizes())?;
    one(out)
}

fn addmm(a: &Args<'_, Meta>) -> Metas {
    into(a.tensor(0)?, mm_meta(a.tensor(1)?, a.tensor(2)?)?)
}

fn baddbmm(a: &Args<'_, Meta>) -> Metas {
    into(a.tensor(0)?, bmm_meta(a.tensor(1)?, a.tensor(2)?)?)
}

fn dot(a: &Args<'_, Meta>) -> Metas {
    let (x, y) = (a.tensor(0)?, a.tensor(1)?);
    ensure!(x.rank() == 1 && y.rank() == 1, "1D tensors expected, but got {}D and {}D tensors", x.rank(), y.rank());
    let show = promote::name;
    ensure!(
        x.dtype == y.dtype,
        "dot : expected both vectors to have same dtype, but found {} and {}",
        show(x.dtype),
        show(y.dtype)
    );
    let (n, m) = (x.sizes()[0], y.sizes()[0]);
    ensure!(
        n == m,
        "inconsistent tensor size, expected tensor [{n}] and src [{m}] to have the same number of elements"
    );
    no_bool("dot", x.dtype)?;
    one(fresh(x.dtype, &[]))
}

fn mv_meta(m: &Meta, v: &Meta) -> Result<Meta> {
    ensure!(m.rank() == 2 && v.rank() == 1, "vector + matrix @ vector expected, got {}, {}", m.rank(), v.rank());
    let (s, n) = (m.sizes(), v.sizes()[0]);
    ensure!(s[1] == n, "size mismatch, got input ({}), mat ({}x{}), vec ({n})", s[0], s[0], s[1]);
    same_dtype(m, v, "mat and vec")?;
    no_bool("addmv_impl_cpu", m.dtype)?;
    Ok(fresh(m.dtype, &[s[0]]))
}

fn mv(a: &Args<'_, Meta>) -> Metas {
    one(mv_meta(a.tensor(0)?, a.tensor(1)?)?)
}

fn addmv(a: &Args<'_, Meta>) -> Metas {
    into(a.tensor(0)?, mv_meta(a.tensor(1)?, a.tensor(2)?)?)
}

fn linear(a: &Args<'_, Meta>) -> Metas {
    let (x, w, bias) = (a.tensor(0)?, a.tensor(1)?, a.opt_tensor(2)?);
    ensure!(x.rank() >= 1, "both arguments to linear need to be at least 1D, but they are 0D and {}D", w.rank());
    ensure!(
        w.rank() == 2 || w.rank() == 1 && bias.is_none(),
        "linear: the weight must be a matrix, got {}-D tensor",
        w.rank()
    );
    let k = x.sizes()[x.rank() - 1];
    ensure!(
        k == w.sizes()[w.rank() - 1],
        "mat1 and mat2 shapes cannot be multiplied ({}x{k} and {}x{})",
        x.layout.numel() / k.max(1),
        w.sizes()[w.rank() - 1],
        w.sizes()[0]
    );
    ensure!(
        x.dtype == w.dtype,
        "mat1 and mat2 must have the same dtype, but got {} and {}",
        promote::name(x.dtype),
        promote::name(w.dtype)
    );
    no_bool("addmm_impl_cpu_", x.dtype)?;
    let mut sizes = x.sizes()[..x.rank() - 1].to_vec();
    if w.rank() == 2 {
        sizes.push(w.sizes()[0]);
    }
    let out = fresh(x.dtype, &sizes);
    match bias {
        Some(b) => into(b, out),
        None => one(out),
    }
}

fn matmul(a: &Args<'_, Meta>) -> Metas {
    let (x, y) = (a.tensor(0)?, a.tensor(1)?);
    let (p, q) = (x.rank(), y.rank());
    ensure!(p > 0 && q > 0, "both arguments to matmul need to be at least 1D, but they are {p}D and {q}D");
    same_dtype(x, y, "m1 and m2")?;
    no_bool("addmm_impl_cpu_", x.dtype)?;
    let (k, l) = (x.sizes()[p - 1], y.sizes()[q.max(2) - 2]);
    if k != l {
        let rows = x.layout.numel() / k.max(1);
        let cols = if q > 1 { y.sizes()[q - 1] } else { 1 };
        return fail(format!("mat1 and mat2 shapes cannot be multiplied ({rows}x{k} and {l}x{cols})"));
    }
    let mut sizes = broadcast_sizes(&[&x.sizes()[..p.max(2) - 2], &y.sizes()[..q.max(2) - 2]])?.to_vec();
    if p > 1 {
        sizes.push(x.sizes()[p - 2]);
    }
    if q > 1 {
        sizes.push(y.sizes()[q - 1]);
    }
    one(fresh(x.dtype, &sizes))
}

fn product(c: &Call<'_>) -> Result<()> {
    ran(matmul::product(c.args.tensor(0)?, c.args.tensor(1)?, false, &Added::NONE, &c.outs[0], c.ctx.threads))
}

fn vdot(c: &Call<'_>) -> Result<()> {
    ran(matmul::vdot(c.args.tensor(0)?, c.args.tensor(1)?, &c.outs[0]))
}

fn added(c: &Call<'_>) -> Result<()> {
    let added = Added { c: Some(*c.args.tensor(0)?), beta: c.args.scalar(3)?, alpha: c.args.scalar(4)? };
    ran(matmul::product(c.args.tensor(1)?, c.args.tensor(2)?, false, &added, &c.outs[0], c.ctx.threads))
}

fn linear_kernel(c: &Call<'_>) -> Result<()> {
    let added = Added::bias(c.args.opt_tensor(2)?.copied());
    ran(matmul::product(c.args.tensor(0)?, c.args.tensor(1)?, true, &added, &c.outs[0], c.ctx.threads))
}

/// Scratch bytes of a product, with an addend or without.
fn of_product(_: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    Ok(matmul::product_room(stored(&outs[0])))
}

/// Parts of a product with one matrix: all dimensions but the last are rows.
fn finished(_: &Args<'_, Meta>, outs: &[Meta]) -> Option<usize> {
    outs[0].rank().checked_sub(1)
}

/// As [`finished`], if the right operand is one matrix.
fn finished_by_matrix(a: &Args<'_, Meta>, outs: &[Meta]) -> Option<usize> {
    let (x, y) = (a.tensor(0).ok()?, a.tensor(1).ok()?);
    if x.rank() > 0 && y.rank() == 2 { finished(a, outs) } else { None }
}

/// Scratch bytes of `vdot`: both operands in row-major order, and the conjugate of the first.
fn of_vdot(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    Ok(packed(a, outs)? + restride_kernels::support::pack::compute_room(outs[0].dtype, a.tensor(0)?.layout.numel()))
}

/// Multiply-adds of a product whose left operand is argument `LEFT`: each element of the result sums one of its rows.
fn macs<const LEFT: usize>(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<i64> {
    let depth = a.tensor(LEFT)?.sizes().last().copied().unwrap_or(1);
    Ok(outs[0].layout.numel().saturating_mul(depth))
}

pub(crate) static OPS: &[OpDef] = table![
    OpDef {
        by_row: true,
        prepacked: Some(&packed::LINEAR),
        ..close("linear", linear, linear_kernel, of_product, samples!(linear_samples))
            .counted(macs::<0>)
            .finishing(finished_by_matrix)
    }
    .noted("x times the transpose of the weight, plus a bias"),
    OpDef {
        prepacked: Some(&packed::ADDMM),
        overlap: OverlapCheck::Unseen,
        ..close("addmm", addmm, added, of_product, samples!(addmm_samples)).counted(macs::<1>).finishing(finished)
    },
    OpDef {
        prepacked: Some(&packed::MM),
        ..close("mm", mm, product, of_product, samples!(mm_samples)).counted(macs::<0>).finishing(finished)
    },
    close("bmm", bmm, product, of_product, samples!(bmm_samples)).counted(macs::<0>),
    OpDef {
        overlap: OverlapCheck::Unseen,
        ..close("baddbmm", baddbmm, added, of_product, samples!(baddbmm_samples)).counted(macs::<1>)
    },
    OpDef {
        by_batch: Some(&ByBatch { each: &[0, 1], broadcast: &[] }),
        prepacked: Some(&packed::MM),
        ..close("matmul", matmul, product, of_product, samples!(matmul_samples))
            .counted(macs::<0>)
            .finishing(finished_by_matrix)
    },
    close("dot", dot, product, of_product, samples!(vector_samples)).counted(macs::<0>),
    close("vdot", dot, vdot, of_vdot, samples!(vector_samples))
        .counted(macs::<0>)
        .noted("dot with the conjugate of the first vector"),
    close("mv", mv, product, of_product, samples!(mv_samples)).counted(macs::<0>),
    OpDef {
        overlap: OverlapCheck::Unseen,
        ..close("addmv", addmv, added, of_product, samples!(addmv_samples)).counted(macs::<1>)
    },
];

/// Other names of PyTorch for operators of this family.
static ALIASES: &[(&str, &str)] = &[("ger", "outer")];

/// The operators and gradients of this family.
pub(crate) static FAMILY: crate::Family = crate::Family {
    ops: &[OPS, composed::OPS, chain::OPS, einsum::OPS, grouped::OPS, packed::OPS],
    gradients: &[grad::GRADS],
    aliases: ALIASES,
};

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    pub(crate) const HALF: [DType; 6] = [DType::F32, DType::F64, DType::F16, DType::BF16, DType::I32, DType::C64];

    pub(crate) fn mm_samples() -> Samples {
        let mut out = Vec::new();
        for d in HALF {
            out.push(sample![tensor(d, &[3, 4], 1), tensor(d, &[4, 5], 2)]);
            out.push(sample![transposed(d, &[3, 4], 3), strided(d, &[4, 2], 4)]);
        }
        for (m, k, n) in [(1, 7, 1), (1, 7, 9), (9, 7, 1), (20, 33, 17), (3, 0, 2), (0, 3, 2), (2, 3, 0)] {
            out.push(sample![tensor(DType::F32, &[m, k], 1), transposed(DType::F32, &[k, n], 2)]);
        }
        out.push(sample![expanded(DType::F32, &[3, 4], 3), tensor(DType::F32, &[4, 2], 4)]);
        out
    }

    pub(crate) fn addmm_samples() -> Samples {
        let mut out = Vec::new();
        for d in HALF {
            out.push(sample![tensor(d, &[5], 0), tensor(d, &[3, 4], 1), transposed(d, &[4, 5], 2)]);
            out.push(sample![transposed(d, &[3, 5], 0), strided(d, &[3, 4], 1), tensor(d, &[4, 5], 2), 2, 3]);
        }
        let (x, y) = (tensor(DType::F32, &[3, 4], 1), tensor(DType::F32, &[4, 5], 2));
        out.push(sample![tensor(DType::F32, &[], 0), &x, &y, 0.5, -1.5]);
        out.push(sample![tensor(DType::F32, &[3, 1], 0), &x, &y, 0.0, 1.0]);
        let z = |sizes: &[i64]| tensor(DType::C64, sizes, 3);
        out.push(sample![z(&[3, 5]), z(&[3, 4]), z(&[4, 5]), complex(0.5, 2.0), complex(-1.0, 0.5)]);
        out.push(sample![
            tensor(DType::F32, &[3, 1], 0),
            tensor(DType::F32, &[3, 0], 1),
            tensor(DType::F32, &[0, 2], 1),
            0.5
        ]);
        out
    }

    pub(crate) fn bmm_samples() -> Samples {
        let mut out = Vec::new();
        for d in HALF {
            out.push(sample![tensor(d, &[2, 3, 4], 1), tensor(d, &[2, 4, 5], 2)]);
            out.push(sample![transposed(d, &[2, 3, 4], 3), strided(d, &[2, 4, 2], 4)]);
        }
        let d = DType::F32;
        out.push(sample![expanded(d, &[3, 2, 20], 3), transposed(d, &[3, 20, 18], 4)]);
        out.push(sample![tensor(d, &[0, 2, 3], 3), tensor(d, &[0, 3, 2], 4)]);
        out.push(sample![tensor(d, &[2, 2, 0], 3), tensor(d, &[2, 0, 3], 4)]);
        out
    }

    pub(crate) fn baddbmm_samples() -> Samples {
        let mut out = Vec::new();
        for d in HALF {
            out.push(sample![tensor(d, &[2, 3, 5], 0), tensor(d, &[2, 3, 4], 1), transposed(d, &[2, 4, 5], 2)]);
            out.push(sample![tensor(d, &[3, 1], 0), strided(d, &[2, 3, 4], 1), tensor(d, &[2, 4, 5], 2), 2, -1]);
        }
        let z = |sizes: &[i64]| tensor(DType::C64, sizes, 3);
        out.push(sample![z(&[2, 3, 5]), z(&[2, 3, 4]), z(&[2, 4, 5]), complex(0.5, 2.0), complex(-1.0, 0.5)]);
        out
    }

    pub(crate) fn matmul_samples() -> Samples {
        let shapes: [(&[i64], &[i64]); 14] = [
            (&[3], &[3]),
            (&[2, 3], &[3]),
            (&[3], &[3, 2]),
            (&[2, 3], &[3, 4]),
            (&[3], &[5, 3, 2]),
            (&[2, 3], &[5, 3, 2]),
            (&[5, 2, 3], &[3]),
            (&[5, 2, 3], &[3, 4]),
            (&[4, 5, 2, 3], &[3, 4]),
            (&[5, 1, 2, 3], &[4, 3, 6]),
            (&[5, 2, 3], &[5, 3, 4]),
            (&[0, 2, 3], &[3, 4]),
            (&[5, 2, 0], &[0, 4]),
            (&[1, 2, 20], &[3, 20, 30]),
        ];
        let mut out = Vec::new();
        for (x, y) in shapes {
            let d = DType::F32;
            out.push(sample![tensor(d, x, 1), tensor(d, y, 2)]);
            out.push(sample![transposed(d, x, 3), transposed(d, y, 4)]);
            out.push(sample![strided(d, x, 5), strided(d, y, 6)]);
        }
        for d in HALF {
            out.push(sample![tensor(d, &[2, 3, 4], 1), transposed(d, &[4, 5], 2)]);
        }
        out
    }

    pub(crate) fn linear_samples() -> Samples {
        let mut out = Vec::new();
        for x in [&[3][..], &[2, 3], &[4, 2, 3], &[2, 4, 2, 3], &[0, 3], &[1, 3]] {
            let d = DType::F32;
            let (w, b) = (tensor(d, &[6, 3], 7), tensor(d, &[6], 8));
            for x in forms(d, x, 1) {
                out.push(sample![&x, &w]);
                out.push(sample![&x, &w, &b]);
            }
            out.push(sample![tensor(d, x, 1), transposed(d, &[6, 3], 2), strided(d, &[6], 3)]);
        }
        for d in HALF {
            out.push(sample![tensor(d, &[2, 3], 1), tensor(d, &[5, 3], 2), tensor(d, &[5], 3)]);
        }
        let d = DType::F32;
        out.push(sample![tensor(d, &[2, 3], 1), tensor(d, &[3], 2)]);
        out.push(sample![tensor(d, &[4, 2, 3], 1), tensor(d, &[5, 3], 2), tensor(d, &[2, 5], 2)]);
        out.push(sample![tensor(d, &[20, 33], 1), tensor(d, &[40, 33], 2), tensor(d, &[40], 2)]);
        out
    }

    pub(crate) fn vector_samples() -> Samples {
        let mut out: Samples = HALF.iter().map(|&d| sample![tensor(d, &[40], 1), strided(d, &[40], 2)]).collect();
        out.push(sample![tensor(DType::F32, &[0], 1), tensor(DType::F32, &[0], 2)]);
        out
    }

    pub(crate) fn mv_samples() -> Samples {
        HALF.iter()
            .flat_map(|&d| {
                [
                    sample![tensor(d, &[3, 4], 1), tensor(d, &[4], 2)],
                    sample![transposed(d, &[30, 20], 1), strided(d, &[20], 2)],
                ]
            })
            .collect()
    }

    pub(crate) fn addmv_samples() -> Samples {
        HALF.iter()
            .flat_map(|&d| {
                [
                    sample![tensor(d, &[3], 0), tensor(d, &[3, 4], 1), tensor(d, &[4], 2)],
                    sample![tensor(d, &[], 0), transposed(d, &[30, 20], 1), strided(d, &[20], 2), 2, 3],
                ]
            })
            .collect()
    }
}
