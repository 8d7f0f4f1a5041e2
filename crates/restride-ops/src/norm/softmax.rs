//! Softmax and its logarithm. Results are row-major for any operand strides, as on PyTorch's CPU.

use crate::support::scratch::{packed, stored};
use crate::support::tiles::{all, by_rows};
use crate::support::*;
use restride_ir::{Args, Call, DType, Layout, Meta, OpDef, Reuse, ReuseKind, TileRule};
use restride_kernels::norm::softmax::{self, Softmax};
use restride_kernels::support::scratch::room;
use smallvec::smallvec;

/// The dimension argument, counted from the front; a 0-d tensor has one dimension.
fn dimension<V>(a: &Args<'_, V>, i: usize, layout: &Layout) -> Result<usize> {
    Ok(layout.dim(a.int(i)?)?)
}

fn infer_as(a: &Args<'_, Meta>, dtype: DType, what: &str) -> Metas {
    let x = a.tensor(0)?;
    dimension(a, 1, &x.layout)?;
    ensure!(dtype.is_float(), "\"{what}_kernel_impl\" not implemented for '{}'", crate::support::promote::name(dtype));
    one(fresh(dtype, x.sizes()))
}

/// Shape rule of `softmax.int`, with an optional type to convert to.
fn infer(a: &Args<'_, Meta>) -> Metas {
    infer_as(a, a.opt_dtype(2)?.unwrap_or(a.tensor(0)?.dtype), "softmax")
}

/// Shape rule of `_softmax`.
fn infer_plain(a: &Args<'_, Meta>) -> Metas {
    ensure!(!a.bool(2)?, "softmax with half to float conversion is not supported on CPU");
    infer_as(a, a.tensor(0)?.dtype, "softmax")
}

fn run(c: &Call<'_>, what: Softmax) -> Result<()> {
    let (x, out) = (c.args.tensor(0)?, &c.outs[0]);
    let dim = dimension(&c.args, 1, x.layout())?;
    let half = matches!(out.dtype(), DType::F16 | DType::BF16);
    if half && x.dtype() != out.dtype() {
        // The operand is converted, and thereby rounded, first.
        let layout = Layout::contiguous(x.sizes());
        return restride_kernels::support::scratch::tensor(out.dtype(), &layout, |narrow| {
            ran(restride_kernels::movement::copy::same_order(x, narrow))?;
            ran(softmax::softmax(&narrow.as_view(), dim, what, out, c.ctx.threads))
        });
    }
    ran(softmax::softmax(x, dim, what, out, c.ctx.threads))
}

fn scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let (x, out) = (a.tensor(0)?, &outs[0]);
    let dim = dimension(a, 1, &x.layout)?;
    let half = matches!(out.dtype, DType::F16 | DType::BF16) && x.dtype != out.dtype;
    // The kernel converts the operand first, in scratch.
    if half {
        let narrow = Layout::contiguous(x.sizes());
        let bytes = room::<u8>(narrow.numel() as usize * out.dtype.size());
        return Ok(bytes + softmax::softmax_room((out.dtype, &narrow), dim, stored(out)));
    }
    Ok(softmax::softmax_room(stored(x), dim, stored(out)))
}

fn backward_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let dim = dimension(a, 2, &a.tensor(0)?.layout)?;
    let inner: i64 = outs[0].sizes().iter().skip(dim + 1).product();
    Ok(packed(a, outs)? + restride_kernels::support::pack::compute_room(outs[0].dtype, inner))
}

fn backward_infer(a: &Args<'_, Meta>) -> Metas {
    let (g, y) = (a.tensor(0)?, a.tensor(1)?);
    dimension(a, 2, &g.layout)?;
    ensure!(
        g.dtype == y.dtype && g.sizes() == y.sizes(),
        "the gradient and the result must be of one type and size, got {g} and {y}"
    );
    ensure!(g.dtype.is_float(), "not implemented for '{}'", crate::support::promote::name(g.dtype));
    ensure!(
        a.opt_dtype(3)?.is_none_or(|d| d == g.dtype),
        "softmax backward with half to float conversion is not supported on CPU"
    );
    one(fresh(g.dtype, g.sizes()))
}

fn backward(c: &Call<'_>, log: bool) -> Result<()> {
    let (g, y) = (c.args.tensor(0)?, c.args.tensor(1)?);
    let dim = dimension(&c.args, 2, g.layout())?;
    ran(softmax::softmax_backward(g, y, dim, log, &c.outs[0], c.ctx.threads))
}

/// Rows along the dimension that is argument `dim`, of as many operands. Where other dimensions follow it, their elements are summed side
/// by side, in an order that depends on whether there are any.
fn rows(a: &Args<'_, Meta>, results: &[Meta], dim: usize, operands: usize) -> Option<TileRule> {
    let layout = &results[0].layout;
    let (dim, rank) = (dimension(a, dim, layout).ok()?, layout.rank());
    by_rows(rank, |d| d >= dim, smallvec![all(rank)], smallvec![all(rank); operands])
}

/// The kernel reads each row before it writes the row.
static ROWS: &[Reuse] = &[Reuse { arg: 0, result: 0, kind: ReuseKind::RowWise { dim: 1 } }];

/// The kernel reads each row of the gradient before it writes the row.
static GRADIENT_ROWS: &[Reuse] = &[Reuse { arg: 0, result: 0, kind: ReuseKind::RowWise { dim: 2 } }];

macro_rules! softmax {
    ($schema:literal, $what:ident, $infer:expr, $samples:expr) => {
        close($schema, $infer, |c| run(c, Softmax::$what), scratch, samples!($samples))
            .reusing(ROWS)
            .tiled(|a, results| rows(a, results, 1, 1))
    };
}

macro_rules! gradient {
    ($schema:literal, $log:literal) => {
        close($schema, backward_infer, |c| backward(c, $log), backward_scratch, samples!(backward_samples))
            .reusing(GRADIENT_ROWS)
            .tiled(|a, results| rows(a, results, 2, 2))
    };
}

pub(crate) static OPS: &[OpDef] = table![
    softmax!("softmax.int", Plain, infer, typed_samples),
    softmax!("_softmax", Plain, infer_plain, plain_samples),
    softmax!("log_softmax.int", Log, infer, typed_samples),
    softmax!("_log_softmax", Log, infer_plain, plain_samples),
    OpDef {
        doc: "softmax with zeros for rows of minus infinity",
        ..softmax!("_safe_softmax", Safe, infer, typed_samples)
    },
    gradient!("_softmax_backward_data", false),
    gradient!("_log_softmax_backward_data", true),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    /// Sample calls over each dimension of each layout, followed by `extra`.
    pub(crate) fn samples(extra: fn(DType) -> restride_ir::SampleArg) -> Samples {
        let mut out = Vec::new();
        for d in [DType::F32, DType::F64, DType::F16, DType::BF16] {
            for dim in [0, 1, -1] {
                out.extend(forms(d, &[3, 4, 19], 1).into_iter().map(|x| sample![x, dim, extra(d)]));
            }
        }
        let d = DType::F32;
        for x in [
            expanded(d, &[3, 5], 1),
            nhwc(d, &[2, 3, 4, 5], 2),
            tensor(d, &[0, 3], 1),
            tensor(d, &[3, 0], 1),
            tensor(d, &[], 1),
            in_range(d, Layout::contiguous(&[4, 33]), 3, -90.0, 90.0),
        ] {
            out.push(sample![x, -1, extra(d)]);
        }
        let inf = f32::INFINITY;
        out.push(sample![
            RawTensor::from_slice(&[-inf, -inf, 1.0, -inf, inf, 2.0, f32::NAN, 0.0], &[4, 2]),
            1,
            extra(d)
        ]);
        out.push(sample![
            RawTensor::from_slice(&[-inf, -inf, 1.0, -inf, inf, 2.0, f32::NAN, 0.0], &[2, 4]),
            0,
            extra(d)
        ]);
        out.push(sample![tensor(d, &[3, 4], 1), 2, extra(d)]);
        out.push(sample![ints(&[1, 2, 3], &[3]), 0, extra(DType::I64)]);
        out
    }

    pub(crate) fn plain_samples() -> Samples {
        samples(|_| crate::support::samples::IntoArg::arg(false))
    }

    pub(crate) fn typed_samples() -> Samples {
        let mut out = samples(|_| restride_ir::Arg::None);
        for d in [DType::F32, DType::F64, DType::F16, DType::BF16] {
            out.push(sample![tensor(DType::F32, &[3, 7], 1), 1, d]);
            out.push(sample![transposed(DType::BF16, &[3, 7], 1), 0, d]);
            out.push(sample![ints(&[1, 2, 3], &[3]), 0, d]);
        }
        out
    }

    pub(crate) fn backward_samples() -> Samples {
        let mut out = Vec::new();
        for d in [DType::F32, DType::F64, DType::F16, DType::BF16] {
            for dim in [0, 1, -1] {
                let ys = forms(d, &[3, 4, 9], 4).map(|t| {
                    let near = Layout::strided(&t.layout().sizes, &t.layout().strides, t.layout().offset);
                    in_range(d, near, 7, 0.0, 0.3)
                });
                out.extend(forms(d, &[3, 4, 9], 1).into_iter().zip(ys).map(|(g, y)| sample![g, y, dim, d]));
            }
        }
        let d = DType::F32;
        out.push(sample![tensor(d, &[0, 4], 1), tensor(d, &[0, 4], 2), 1, d]);
        out.push(sample![tensor(d, &[], 1), tensor(d, &[], 2), 0, d]);
        out
    }
}
