//! Distances between rows, and norms of vectors and matrices.

use crate::reduce::wrapped;
use crate::support::composite::composite;
use crate::support::promote::name;
use crate::support::scratch::stored;
use crate::support::{Metas, Result, ValArgs, Vals, close, emit, ensure, fail, fresh, pass, sizes};
use restride_ir::{Arg, Args, Call, Emit, Exactness, Meta, OpDef, OpError, Scalar, Val};
use restride_kernels::movement::copy;
use restride_kernels::reduce::distance::{distances, pairs, room};
use restride_tensor::{DType, Dims, Layout, View};
use smallvec::smallvec;

fn order(p: f64) -> Result<f64> {
    ensure!(p >= 0.0, "only non-negative p values are supported");
    Ok(p)
}

/// Layouts of both operands with broadcast batches, and the batch sizes.
fn batched(a: &Layout, b: &Layout) -> Result<(Layout, Layout, Vec<i64>)> {
    ensure!(
        a.rank() >= 2 && b.rank() >= 2,
        "cdist only supports at least 2D tensors, got {}D and {}D",
        a.rank(),
        b.rank()
    );
    let (n, k) = (a.rank() - 2, b.rank() - 2);
    ensure!(
        a.sizes[n + 1] == b.sizes[k + 1],
        "X1 and X2 must have the same number of columns. X1: {} X2: {}",
        a.sizes[n + 1],
        b.sizes[k + 1]
    );
    let batch = crate::support::strides::broadcast_sizes(&[&a.sizes[..n], &b.sizes[..k]])?;
    let expand = |l: &Layout| {
        let sizes: Vec<i64> = batch.iter().chain(&l.sizes[l.rank() - 2..]).copied().collect();
        crate::support::strides::broadcast(l, &sizes)
    };
    Ok((expand(a), expand(b), batch.to_vec()))
}

fn infer_cdist(a: &Args<'_, Meta>) -> Metas {
    let (x, y) = (a.tensor(0)?, a.tensor(1)?);
    for t in [x, y] {
        ensure!(
            matches!(t.dtype, DType::F32 | DType::F64),
            "cdist only supports floating-point dtypes, got {}",
            name(t.dtype)
        );
    }
    ensure!(x.dtype == y.dtype, "cdist of {} and {}", name(x.dtype), name(y.dtype));
    order(a.opt_float(2)?.unwrap_or(2.0))?;
    let (l, r, mut out) = batched(&x.layout, &y.layout)?;
    out.extend([l.sizes[out.len()], r.sizes[out.len()]]);
    Ok(smallvec![fresh(x.dtype, &out)])
}
fn run_cdist(c: &Call<'_>) -> Result<()> {
    let (x, y) = (c.args.tensor(0)?, c.args.tensor(1)?);
    let p = c.args.opt_float(2)?.unwrap_or(2.0);
    let out = &c.outs[0];
    let wide = |v: &View<'_>| wide_sizes(v.sizes(), out.sizes());
    let done = copy::expanded(x, &wide(x), |x| copy::expanded(y, &wide(y), |y| distances(x, y, p, out, c.ctx.threads)));
    done.map_err(OpError::new)
}
/// A matrix's own sizes behind the batch sizes of the result.
fn wide_sizes(own: &[i64], out: &[i64]) -> Dims<i64> {
    out[..out.len() - 2].iter().chain(&own[own.len() - 2..]).copied().collect()
}
fn cdist_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let (x, y, _) = batched(&a.tensor(0)?.layout, &a.tensor(1)?.layout)?;
    let dtype = outs[0].dtype;
    Ok(room(&[(dtype, &x), (dtype, &y)], stored(&outs[0])))
}

fn infer_pdist(a: &Args<'_, Meta>) -> Metas {
    let x = a.tensor(0)?;
    ensure!(x.layout.rank() == 2, "pdist only supports 2D tensors, got: {}D", x.layout.rank());
    ensure!(matches!(x.dtype, DType::F32 | DType::F64), "pdist only supports floating-point dtypes");
    order(a.opt_float(1)?.unwrap_or(2.0))?;
    let n = x.sizes()[0];
    Ok(smallvec![fresh(x.dtype, &[n * (n - 1).max(0) / 2])])
}
fn infer_pdist_forward(a: &Args<'_, Meta>) -> Metas {
    ensure!(a.tensor(0)?.layout.is_contiguous(), "_pdist_forward requires contiguous input");
    infer_pdist(a)
}
fn run_pdist(c: &Call<'_>) -> Result<()> {
    pairs(c.args.tensor(0)?, c.args.opt_float(1)?.unwrap_or(2.0), &c.outs[0], c.ctx.threads).map_err(OpError::new)
}
fn pdist_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    Ok(room(&[stored(a.tensor(0)?)], stored(&outs[0])))
}

/// `_pdist_backward(grad, self, p, pdist)`: each pair of rows adds its part to one row and takes it from the other.
fn pdist_backward(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (g, x, p, d) = (*a.tensor(0)?, *a.tensor(1)?, order(a.float(2)?)?, *a.tensor(3)?);
    let (n, dtype) = (sizes(e, x)[0], e.meta(x).dtype);
    let zero = emit!(e, "aten.full.default", sizes(e, x), 0, dtype)?;
    if p == 0.0 || n < 2 {
        return Ok(smallvec![zero]);
    }
    let pairs = emit!(e, "aten.triu_indices.default", n, n, 1)?;
    let ends = [0, 1].map(|k| emit!(e, "aten.select.int", pairs, 0, k));
    let [i, j] = [ends[0].clone()?, ends[1].clone()?];
    let (own, other) =
        (emit!(e, "aten.index_select.default", x, 0, i)?, emit!(e, "aten.index_select.default", x, 0, j)?);
    let diff = emit!(e, "aten.sub.Tensor", own, other)?;
    let (g, d) = (emit!(e, "aten.unsqueeze.default", g, 1)?, emit!(e, "aten.unsqueeze.default", d, 1)?);
    let sign = emit!(e, "aten.sign.default", diff)?;
    let size = emit!(e, "aten.abs.default", diff)?;
    let part = if p == 1.0 {
        emit!(e, "aten.mul.Tensor", sign, g)?
    } else if p.is_infinite() {
        // The largest differences are those that equal the distance.
        let is = emit!(e, "aten.eq.Tensor", size, d)?;
        let part = emit!(e, "aten.mul.Tensor", sign, g)?;
        emit!(e, "aten.mul.Tensor", part, is)?
    } else {
        let power = emit!(e, "aten.pow.Tensor_Scalar", size, p - 1.0)?;
        let power = emit!(e, "aten.mul.Tensor", sign, power)?;
        let power = if p == 2.0 { diff } else { power };
        let power = emit!(e, "aten.mul.Tensor", power, g)?;
        let below = emit!(e, "aten.pow.Tensor_Scalar", d, p - 1.0)?;
        let below = if p == 2.0 { d } else { below };
        let part = emit!(e, "aten.div.Tensor", power, below)?;
        // A difference of zero has no direction.
        let none = emit!(e, "aten.eq.Scalar", if p < 1.0 { size } else { d }, 0)?;
        emit!(e, "aten.masked_fill.Scalar", part, none, 0)?
    };
    let out = emit!(e, "aten.index_add.default", zero, 0, i, part)?;
    Ok(smallvec![emit!(e, "aten.index_add.default", out, 0, j, part, -1)?])
}

/// `dist`: norm of a difference.
fn dist(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let d = emit!(e, "aten.sub.Tensor", *a.tensor(0)?, *a.tensor(1)?)?;
    Ok(smallvec![emit!(e, "aten.norm.Scalar", d, pass(a, 2))?])
}

/// Matrix norms that are not norms of the entries.
#[derive(Clone, Copy, PartialEq)]
enum MatrixNorm {
    Frobenius,
    Nuclear,
    Order(f64),
}

fn named(s: &str) -> Result<MatrixNorm> {
    match s {
        "fro" => Ok(MatrixNorm::Frobenius),
        "nuc" => Ok(MatrixNorm::Nuclear),
        other => fail(format!("linalg.matrix_norm: Order {other} not supported.")),
    }
}

/// A matrix norm over a pair of dimensions.
fn matrix_norm(e: &mut dyn Emit, x: Val, norm: MatrixNorm, dims: &[i64], keep: bool, dtype: Option<DType>) -> Vals {
    let rank = sizes(e, x).len();
    ensure!(rank >= 2, "linalg.matrix_norm: The input tensor A must have at least 2 dimensions.");
    ensure!(dims.len() == 2, "linalg.matrix_norm: dim must be a 2-tuple. Got {dims:?}");
    let (mut r, mut c) = (wrapped(dims[0], rank)? as i64, wrapped(dims[1], rank)? as i64);
    ensure!(r != c, "linalg.matrix_norm: dims must be different. Got ({}, {})", dims[0], dims[1]);
    if norm == MatrixNorm::Frobenius {
        return Ok(smallvec![emit!(e, "aten.linalg_vector_norm.default", x, 2, [r, c], keep, dtype)?]);
    }
    let singular = match norm {
        MatrixNorm::Order(p) => p.abs() == 2.0,
        _ => true,
    };
    if !singular {
        let MatrixNorm::Order(p) = norm else { return fail("a norm has an order") };
        ensure!(p.abs() == 1.0 || p.is_infinite(), "linalg.matrix_norm: Order {p} not supported.");
        if p.is_infinite() {
            std::mem::swap(&mut r, &mut c);
        }
        let sums = emit!(e, "aten.linalg_vector_norm.default", x, 1, [r], keep, dtype)?;
        let left = if !keep && r < c { c - 1 } else { c };
        let most = sizes(e, sums);
        if p > 0.0 && most[left as usize] == 0 {
            return Ok(smallvec![nothing(e, sums, left as usize, keep)?]);
        }
        let op = if p > 0.0 { "aten.amax.default" } else { "aten.amin.default" };
        return Ok(smallvec![emit!(e, op, sums, [left], keep)?]);
    }
    let x = match dtype {
        Some(d) => emit!(e, "aten._to_copy.default", x, d)?,
        None => x,
    };
    let order: Vec<i64> = (0..rank as i64).filter(|&d| d != r && d != c).chain([r, c]).collect();
    let last = emit!(e, "aten.permute.default", x, order)?;
    let values = emit!(e, "aten.linalg_svdvals.default", last)?;
    let last = sizes(e, values).len() - 1;
    let mut out = match norm {
        MatrixNorm::Order(p) if p > 0.0 && sizes(e, values)[last] == 0 => nothing(e, values, last, false)?,
        MatrixNorm::Order(p) if p > 0.0 => emit!(e, "aten.amax.default", values, [-1], false)?,
        MatrixNorm::Order(_) => emit!(e, "aten.amin.default", values, [-1], false)?,
        _ => emit!(e, "aten.sum.dim_IntList", values, [-1], false)?,
    };
    if keep {
        for d in [r.min(c), r.max(c)] {
            out = emit!(e, "aten.unsqueeze.default", out, d)?;
        }
    }
    Ok(smallvec![out])
}

/// The maximum of an empty dimension of non-negative numbers: zero.
fn nothing(e: &mut dyn Emit, v: Val, dim: usize, keep: bool) -> Result<Val> {
    let m = e.meta(v);
    let mut shape = m.sizes().to_vec();
    if keep {
        shape[dim] = 1;
    } else {
        shape.remove(dim);
    }
    emit!(e, "aten.full.default", shape, 0, m.dtype)
}

fn number(s: Scalar) -> Result<f64> {
    ensure!(!matches!(s, Scalar::Complex(_)), "the order of a norm is a real number");
    Ok(s.as_f64())
}

/// `linalg_norm` without an order or with a number: of all entries, of vectors or of matrices.
fn linalg_norm(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = *a.tensor(0)?;
    let ord = a.opt_scalar(1)?.map(number).transpose()?;
    let (dims, keep, dtype) = (a.opt_ints(2)?, a.opt_bool(3)?.unwrap_or(false), a.opt_dtype(4)?);
    let rank = sizes(e, x).len();
    if let Some(dims) = &dims {
        ensure!(
            matches!(dims.len(), 1 | 2),
            "linalg.norm: If dim is specified, it must be of length 1 or 2. Got {dims:?}"
        );
    } else if ord.is_some() {
        ensure!(
            matches!(rank, 1 | 2),
            "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {rank}D."
        );
    }
    match (ord, dims) {
        (Some(p), dims) if dims.as_ref().map_or(rank, |d| d.len()) == 2 => {
            matrix_norm(e, x, MatrixNorm::Order(p), &dims.unwrap_or_else(|| smallvec![0, 1]), keep, dtype)
        }
        (p, dims) => {
            let dims: Arg<Val, Scalar> = dims.map_or(Arg::None, crate::support::IntoOperand::operand);
            Ok(smallvec![emit!(e, "aten.linalg_vector_norm.default", x, p.unwrap_or(2.0), dims, keep, dtype)?])
        }
    }
}
fn linalg_norm_named(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = *a.tensor(0)?;
    let dims = match a.opt_ints(2)? {
        Some(dims) => dims,
        None => {
            let rank = sizes(e, x).len();
            ensure!(
                rank == 2,
                "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {rank}D."
            );
            smallvec![0, 1]
        }
    };
    matrix_norm(e, x, named(a.str(1)?)?, &dims, a.opt_bool(3)?.unwrap_or(false), a.opt_dtype(4)?)
}
fn linalg_matrix_norm(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let p = number(a.scalar(1)?)?;
    let dims = a.opt_ints(2)?.unwrap_or_else(|| smallvec![-2, -1]);
    matrix_norm(e, *a.tensor(0)?, MatrixNorm::Order(p), &dims, a.opt_bool(3)?.unwrap_or(false), a.opt_dtype(4)?)
}
fn linalg_matrix_norm_named(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let norm = named(a.opt_str(1)?.unwrap_or("fro"))?;
    let dims = a.opt_ints(2)?.unwrap_or_else(|| smallvec![-2, -1]);
    matrix_norm(e, *a.tensor(0)?, norm, &dims, a.opt_bool(3)?.unwrap_or(false), a.opt_dtype(4)?)
}
fn frobenius_norm(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    ensure!(a.ints(1)?.len() <= 2, "Expected at most 2 dimensions, but got {} dimensions instead.", a.ints(1)?.len());
    Ok(smallvec![emit!(e, "aten.linalg_vector_norm.default", *a.tensor(0)?, 2, pass(a, 1), pass(a, 2))?])
}

macro_rules! kernel {
    ($schema:literal, $infer:ident, $run:ident, $scratch:ident, $samples:expr) => {
        // PyTorch computes distances from products; the root of a small difference loses half of its digits.
        close($schema, $infer, $run, $scratch, samples!($samples)).held_to(Exactness::Within { rtol: 1e-4, atol: 1e-4 })
    };
}

pub(crate) static OPS: &[OpDef] = table![
    kernel!("cdist", infer_cdist, run_cdist, cdist_scratch, || distance_samples("")),
    kernel!("_cdist_forward", infer_cdist, run_cdist, cdist_scratch, || distance_samples("forward")),
    kernel!("pdist", infer_pdist, run_pdist, pdist_scratch, pair_samples),
    kernel!("_pdist_forward", infer_pdist_forward, run_pdist, pdist_scratch, pair_samples),
    composite!(pdist_backward, pair_backward(), "_pdist_backward"),
    composite!(dist, dist_samples(), "dist"),
    composite!(linalg_norm, norm_samples(), "linalg_norm"),
    composite!(linalg_norm_named, named_samples(), "linalg_norm.ord_str"),
    composite!(linalg_matrix_norm, matrix_samples(), "linalg_matrix_norm"),
    composite!(linalg_matrix_norm_named, named_samples(), "linalg_matrix_norm.str_ord"),
    composite!(frobenius_norm, frobenius_samples(), "frobenius_norm.dim"),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    pub(crate) const F: DType = DType::F32;

    pub(crate) fn distance_samples(kind: &str) -> Vec<Sample> {
        let mut out = Vec::new();
        for p in [2.0, 1.0, 0.0, 3.0, f64::INFINITY] {
            let push = |out: &mut Vec<Sample>, x: &restride_tensor::RawTensor, y: &restride_tensor::RawTensor| {
                out.push(match kind {
                    "forward" => sample![x, y, p, ()],
                    _ => sample![x, y, p],
                })
            };
            push(&mut out, &tensor(F, &[3, 4], 1), &transposed(F, &[5, 4], 2));
            push(&mut out, &strided(F, &[2, 3, 4], 1), &expanded(F, &[2, 2, 4], 2));
            push(&mut out, &tensor(DType::F64, &[2, 1, 3, 4], 1), &tensor(DType::F64, &[3, 2, 4], 2));
            push(&mut out, &tensor(F, &[0, 4], 1), &tensor(F, &[2, 4], 2));
            push(&mut out, &tensor(F, &[3, 0], 1), &tensor(F, &[2, 0], 2));
        }
        out.push(match kind {
            "forward" => sample![tensor(F, &[2, 3], 1), tensor(F, &[2, 4], 2), 2.0, ()],
            _ => sample![tensor(F, &[2, 3], 1), tensor(F, &[2, 4], 2)],
        });
        out
    }

    pub(crate) fn pair_samples() -> Vec<Sample> {
        let mut out = Vec::new();
        for p in [2.0, 1.0, 0.0, 3.0, f64::INFINITY] {
            out.push(sample![transposed(F, &[4, 3], 1), p]);
            out.push(sample![tensor(DType::F64, &[1, 3], 1), p]);
        }
        out
    }

    pub(crate) fn pair_backward() -> Vec<Sample> {
        let mut out = Vec::new();
        let x = tensor(F, &[4, 3], 1);
        for p in [2.0, 1.0, 0.0, 0.5, 1.5, 3.0] {
            let distances = in_range(F, Layout::contiguous(&[6]), 3, 0.5, 2.0);
            out.push(sample![transposed(F, &[1, 6], 2).alias(F, Layout::contiguous(&[6])).unwrap(), &x, p, distances]);
        }
        // Distances that largest differences equal, and rows that are equal.
        let rows = RawTensor::from_slice(&[1.0f32, 2.0, 3.0, 1.0, 2.0, 3.0, 5.0, 2.0, 1.0], &[3, 3]);
        let most = RawTensor::from_slice(&[0.0f32, 4.0, 4.0], &[3]);
        out.push(sample![tensor(F, &[3], 1), &rows, f64::INFINITY, &most]);
        out.push(sample![tensor(F, &[3], 1), &rows, 2.0, &most]);
        out.push(sample![
            tensor(DType::F64, &[0], 1),
            tensor(DType::F64, &[1, 3], 1),
            2.0,
            tensor(DType::F64, &[0], 1)
        ]);
        out
    }

    pub(crate) fn dist_samples() -> Vec<Sample> {
        let mut out = Vec::new();
        for p in [2.0, 1.0, 0.0, 3.0, f64::INFINITY] {
            out.push(sample![transposed(F, &[4, 3], 1), tensor(F, &[3], 2), p]);
            out.push(sample![tensor(DType::F16, &[4], 1), tensor(DType::F16, &[], 2), p]);
        }
        out
    }

    pub(crate) fn norm_samples() -> Vec<Sample> {
        let x = transposed(F, &[3, 4], 1);
        let cube = tensor(F, &[2, 3, 4], 1);
        let mut out = vec![sample![&x], sample![&cube], sample![&cube, (), (), true], sample![&cube, (), [0, 2]]];
        for p in [1.0, -1.0, f64::INFINITY, f64::NEG_INFINITY] {
            out.push(sample![&x, p]);
            out.push(sample![&cube, p, [2, 0], true]);
            out.push(sample![&cube, p, [0, 1], false, DType::F64]);
            out.push(sample![&cube, p, [1]]);
        }
        for p in [1.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, 2.0] {
            out.push(sample![tensor(F, &[0, 3], 1), p, [0, 1]]);
            out.push(sample![tensor(F, &[2, 3, 0], 1), p, [1, 2], true]);
        }
        out.push(sample![tensor(F, &[5], 1), 3.0]);
        out.push(sample![&cube, 1.0]);
        out.push(sample![&x, 3.0]);
        out
    }

    pub(crate) fn named_samples() -> Vec<Sample> {
        let x = transposed(F, &[3, 4], 1);
        vec![sample![&x, "fro"], sample![tensor(F, &[2, 3, 4], 1), "fro", [0, 2], true], sample![&x, "max"]]
    }

    pub(crate) fn matrix_samples() -> Vec<Sample> {
        norm_samples()
            .into_iter()
            .filter(|s| matches!(s.args.get(1), Some(Arg::Scalar(_))) && s.args.len() != 2)
            .collect()
    }

    pub(crate) fn frobenius_samples() -> Vec<Sample> {
        let x = transposed(F, &[3, 4], 1);
        vec![sample![&x, [0]], sample![&x, [0, 1], true], sample![tensor(DType::C64, &[2, 3], 1), [1]]]
    }
}
