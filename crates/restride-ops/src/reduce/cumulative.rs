//! Cumulative sums, products and extremes, and their gradients; differences, traces and trapezoids.

use crate::gradient::terms::{Cx, T, op, rule, wrap};
use crate::reduce::grad::sorted;
use crate::reduce::wrapped;
use crate::support::composite::composite;
use crate::support::promote::{AsTensor, name};
use crate::support::scratch::stored;
use crate::support::{Metas, Result, ValArgs, Vals, close, emit, ensure, exact, fresh, pass, sizes};
use restride_ir::{Args, Call, Dim, Emit, Expr, Meta, OpDef, OpError, Val};
use restride_kernels::reduce::cumulative::{Scan, extremes, extremes_room, scan, scan_room};
use restride_tensor::DType;
use smallvec::smallvec;

/// Dimension, and the element type of reads and results.
fn read<V: AsTensor>(a: &Args<'_, V>, what: Scan) -> Result<(usize, DType)> {
    let x = a.tensor(0)?;
    let own = x.dtype();
    let dim = wrapped(a.int(1)?, x.layout().rank())?;
    if what == Scan::LogSumExp {
        ensure!(own.is_float() || own.is_complex(), "logcumsumexp is not implemented for '{}'", name(own));
        return Ok((dim, own));
    }
    let asked = a.opt_dtype(2)?;
    ensure!(asked != Some(DType::Bool), "running sums and products are not implemented for 'Bool'");
    Ok((dim, asked.unwrap_or(if own.is_int() || own == DType::Bool { DType::I64 } else { own })))
}
fn infer(a: &Args<'_, Meta>, what: Scan) -> Metas {
    let (_, dtype) = read(a, what)?;
    Ok(smallvec![fresh(dtype, a.tensor(0)?.sizes())])
}
fn run(c: &Call<'_>, what: Scan) -> Result<()> {
    let (dim, dtype) = read(&c.args, what)?;
    scan(c.args.tensor(0)?, dim, what, dtype, &c.outs[0], c.ctx.threads).map_err(OpError::new)
}

fn infer_extreme(a: &Args<'_, Meta>) -> Metas {
    let x = a.tensor(0)?;
    ensure!(!x.dtype.is_complex(), "not implemented for '{}'", name(x.dtype));
    wrapped(a.int(1)?, x.layout.rank())?;
    Ok(smallvec![fresh(x.dtype, x.sizes()), fresh(DType::I64, x.sizes())])
}
fn extreme_scratch(a: &Args<'_, Meta>, _: &[Meta]) -> Result<usize> {
    let x = a.tensor(0)?;
    Ok(extremes_room(stored(x), wrapped(a.int(1)?, x.rank())?))
}
fn run_extreme(c: &Call<'_>, max: bool) -> Result<()> {
    let x = c.args.tensor(0)?;
    let dim = wrapped(c.args.int(1)?, x.sizes().len())?;
    extremes(x, dim, max, &c.outs[0], &c.outs[1], c.ctx.threads).map_err(OpError::new)
}

/// `diff`: subtracts neighbours, `n` times.
fn diff(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = *a.tensor(0)?;
    let (n, dim) = (a.opt_int(1)?.unwrap_or(1), a.opt_int(2)?.unwrap_or(-1));
    ensure!(!sizes(e, x).is_empty(), "diff expects input to be at least one-dimensional");
    ensure!(n >= 0, "order must be non-negative but got {n}");
    let d = wrapped(dim, sizes(e, x).len())? as i64;
    let mut parts: Vec<Val> = Vec::new();
    parts.extend(a.opt_tensor(3)?);
    parts.push(x);
    parts.extend(a.opt_tensor(4)?);
    let mut y = x;
    if n == 0 {
        // A fresh copy, because the schema declares no view.
        return Ok(smallvec![emit!(e, "aten.clone.default", x)?]);
    }
    if parts.len() > 1 {
        y = emit!(e, "aten.cat.default", parts, d)?;
    }
    let n = n.min(sizes(e, y)[d as usize]);
    for _ in 0..n {
        let m = sizes(e, y)[d as usize];
        let after = emit!(e, "aten.slice.Tensor", y, d, 1, m)?;
        let before = emit!(e, "aten.slice.Tensor", y, d, 0, m - 1)?;
        let op = if e.meta(y).dtype == DType::Bool { "aten.logical_xor.default" } else { "aten.sub.Tensor" };
        y = emit!(e, op, after, before)?;
    }
    if y == x {
        y = emit!(e, "aten.clone.default", x)?;
    }
    Ok(smallvec![y])
}

/// `trace`: the sum of the diagonal.
fn trace(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = *a.tensor(0)?;
    let rank = sizes(e, x).len();
    ensure!(rank == 2, "trace: expected a matrix, but got tensor with dim {rank}");
    ensure!(e.meta(x).dtype != DType::Bool, "trace is not implemented for 'Bool'");
    let d = emit!(e, "aten.diagonal.default", x, 0, 0, 1)?;
    Ok(smallvec![emit!(e, "aten.sum.default", d)?])
}

/// `trapezoid`: areas between neighbours of distance `dx`, or of distances from `x`.
fn areas(e: &mut dyn Emit, a: &ValArgs<'_>, running: bool) -> Vals {
    let y = *a.tensor(0)?;
    let by_points = a.as_tensor(1).is_some();
    let dim = a.opt_int(2)?.unwrap_or(-1);
    ensure!(!sizes(e, y).is_empty(), "trapezoid needs at least one dimension");
    ensure!(
        e.meta(y).dtype != DType::Bool,
        "trapezoid: received a bool input for `x` or `y`, but bool is not supported"
    );
    let d = wrapped(dim, sizes(e, y).len())? as i64;
    let n = sizes(e, y)[d as usize];
    if n == 0 {
        // An empty tensor has area zero.
        let mut rest = sizes(e, y);
        rest.remove(d as usize);
        let dtype = e.meta(y).dtype;
        ensure!(!running, "cumulative_trapezoid of nothing is not supported");
        return Ok(smallvec![emit!(e, "aten.full.default", rest, 0, dtype)?]);
    }
    if !by_points && !running {
        // The sum of all points less half of the ends, as PyTorch adds them.
        let sum = emit!(e, "aten.sum.dim_IntList", y, [d], false)?;
        let (first, last) = (emit!(e, "aten.select.int", y, d, 0)?, emit!(e, "aten.select.int", y, d, -1)?);
        let ends = emit!(e, "aten.add.Tensor", first, last)?;
        let ends = emit!(e, "aten.mul.Scalar", ends, 0.5)?;
        let area = emit!(e, "aten.sub.Tensor", sum, ends)?;
        return Ok(smallvec![emit!(e, "aten.mul.Scalar", area, pass(a, 1))?]);
    }
    let left = emit!(e, "aten.slice.Tensor", y, d, 0, n - 1)?;
    let right = emit!(e, "aten.slice.Tensor", y, d, 1, n)?;
    let mut area = emit!(e, "aten.add.Tensor", left, right)?;
    if by_points {
        let x = *a.tensor(1)?;
        let points = sizes(e, x);
        let rank = sizes(e, y).len();
        // A vector extends along the dimension; other coordinates get leading dimensions.
        let shape = match points.len() {
            1 => {
                ensure!(points[0] == n, "There must be one `x` value for each sample point");
                (0..rank).map(|k| if k as i64 == d { n } else { 1 }).collect()
            }
            few if few < rank => std::iter::repeat_n(1, rank - few).chain(points).collect(),
            _ => points,
        };
        let x = emit!(e, "aten.view.default", x, shape)?;
        let m = sizes(e, x)[d as usize];
        let (before, after) =
            (emit!(e, "aten.slice.Tensor", x, d, 0, m - 1)?, emit!(e, "aten.slice.Tensor", x, d, 1, m)?);
        let width = emit!(e, "aten.sub.Tensor", after, before)?;
        area = emit!(e, "aten.mul.Tensor", area, width)?;
    }
    let total = if running {
        emit!(e, "aten.cumsum.default", area, d)?
    } else {
        emit!(e, "aten.sum.dim_IntList", area, [d], false)?
    };
    let scaled = if by_points { total } else { emit!(e, "aten.mul.Scalar", total, pass(a, 1))? };
    Ok(smallvec![emit!(e, "aten.div.Scalar", scaled, 2.0)?])
}
fn area(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    areas(e, a, false)
}
fn running_area(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    areas(e, a, true)
}

fn flipped<'c>(t: T<'c>, dim: i64) -> T<'c> {
    if t.rank() == 0 { t } else { op!(t.cx(), "aten.flip.default", t, [dim]) }
}

fn cumsum_back<'c>(g: T<'c>, dim: i64) -> T<'c> {
    flipped(op!(g.cx(), "aten.cumsum.default", flipped(g, dim), dim), dim)
}

/// `cumprod`: the product of the other factors of each later result. Quadratic in the dimension, since zeros forbid division.
fn cumprod<'c>(c: &'c Cx<'c>) {
    let x = c.arg(0).to(c.result().dtype());
    if x.rank() == 0 {
        return c.set(0, c.grad());
    }
    let last = x.rank() as i64 - 1;
    let dim = wrap(c.int(1), x.rank()) as i64;
    let n = x.size(dim);
    let rows = x.transpose(dim, last);
    let g = c.grad().transpose(dim, last);
    // Row i, column k: the product of the elements after i up to k.
    let place = op!(c, "aten.arange.default", &n);
    let after = place.unsqueeze(0).than("gt", place.unsqueeze(1));
    let mut wide = rows.sizes();
    wide.push(n.clone());
    let spread = rows.unsqueeze(-2).expand(wide);
    let kept = op!(c, "aten.where.ScalarOther", after, spread, 1);
    let later = op!(c, "aten.cumprod.default", kept, -1);
    let reached = place.unsqueeze(0).than("ge", place.unsqueeze(1));
    let weights = later.conj().only(reached);
    let sums = (weights * g.unsqueeze(-2)).sum(vec![-1], false);
    let mut one = rows.sizes();
    one[last as usize] = Expr::Int(1);
    let ones = op!(c, "aten.full.default", one, 1, x.dtype());
    let all = op!(c, "aten.cumprod.default", rows, last);
    let before = c.cat(&[ones, all.slice(last, Expr::Int(0), n.minus(&Expr::Int(1)))], last);
    c.set(0, (sums * before.conj()).transpose(dim, last));
}

/// `logcumsumexp`: the share of each element in each later result. Quadratic in the dimension, because gradients of both
/// signs have no logarithm.
fn logcumsumexp<'c>(c: &'c Cx<'c>) {
    let (x, r, g) = (c.arg(0), c.result(), c.grad());
    if x.rank() == 0 {
        return c.set(0, g);
    }
    let last = x.rank() as i64 - 1;
    let dim = wrap(c.int(1), x.rank()) as i64;
    let row = |t: T<'c>| t.transpose(dim, last);
    let place = op!(c, "aten.arange.default", &x.size(dim));
    let earlier = place.unsqueeze(0).than("lt", place.unsqueeze(1));
    let share = row(x).unsqueeze(-1) - row(r).unsqueeze(-2);
    let share = op!(c, "aten.masked_fill.Scalar", share, earlier, f64::NEG_INFINITY).exp().conj();
    c.set(0, (share * row(g).unsqueeze(-2)).sum(vec![-1], false).transpose(dim, last));
}

macro_rules! scan {
    ($schema:literal, $what:expr, $samples:expr) => {
        close(
            $schema,
            |a| infer(a, $what),
            |c| run(c, $what),
            |a, outs| Ok(scan_room(stored(a.tensor(0)?), read(a, $what)?.1, stored(&outs[0]))),
            samples!($samples),
        )
    };
}
macro_rules! extreme {
    ($schema:literal, $max:literal) => {
        exact($schema, infer_extreme, |c| run_extreme(c, $max), extreme_scratch, samples!(running))
    };
}

pub(crate) static OPS: &[OpDef] = table![
    scan!("cumsum", Scan::Sum, || with_types(ALL)).graded(rule!(|c| c.set(0, cumsum_back(c.grad(), c.int(1))))),
    scan!("cumprod", Scan::Prod, || with_types(ALL)).graded(rule!(cumprod)),
    scan!("logcumsumexp", Scan::LogSumExp, logs).graded(rule!(logcumsumexp)),
    scan!("_logcumsumexp", Scan::LogSumExp, || along(REAL)).graded(rule!(logcumsumexp)),
    extreme!("cummax", true).graded(rule!(|c| sorted(c, c.int(1)))),
    extreme!("cummin", false).graded(rule!(|c| sorted(c, c.int(1)))),
    composite!(diff, diffs(), "diff"),
    composite!(trace, traces(), "trace"),
    composite!(area, area_samples(true), "trapezoid.x"),
    composite!(area, area_samples(false), "trapezoid.dx"),
    composite!(running_area, area_samples(true), "cumulative_trapezoid.x"),
    composite!(running_area, area_samples(false), "cumulative_trapezoid.dx"),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::reduce::samples::*;

    /// Sample calls over one dimension, without `keepdim`.
    pub(crate) fn along(types: Types) -> Vec<Sample> {
        let mut out = over_dim(types);
        out.iter_mut().for_each(|s| s.args.truncate(2));
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        out.push(sample![RawTensor::from_slice(&[1.0, -inf, 3.0, 3.0, nan, 2.0, nan, inf], &[8]), 0]);
        out.push(sample![RawTensor::from_slice(&[-inf, -inf, 3.0, inf, inf, 2.0, 1.0, -inf], &[2, 4]), 1]);
        out
    }

    pub(crate) fn with_types(types: Types) -> Vec<Sample> {
        let mut out = along(types);
        let pairs = [
            (DType::F32, DType::F64),
            (DType::F32, DType::I64),
            (DType::I64, DType::F32),
            (DType::I32, DType::I32),
            (DType::F32, DType::F16),
            (DType::I64, DType::I8),
            (DType::F32, DType::Bool),
        ];
        out.extend(pairs.into_iter().map(|(from, to)| sample![tensor(from, &[3, 4], 1), 1, to]));
        out
    }

    pub(crate) fn running() -> Vec<Sample> {
        let mut out = along(ALL_REAL);
        out.push(sample![ints(&[1, 3, 3, 2, 3, 0, 0, -1, 0], &[9]), 0]);
        out
    }

    pub(crate) fn diffs() -> Vec<Sample> {
        let mut out: Vec<Sample> = along(ALL)
            .into_iter()
            .map(|mut s| {
                let dim = s.args.remove(1);
                s.args.extend([crate::support::samples::IntoArg::arg(1), dim]);
                s
            })
            .collect();
        let f = DType::F32;
        let x = transposed(f, &[3, 5], 1);
        out.push(sample![&x, 2]);
        out.push(sample![&x, 7]);
        out.push(sample![&x, 0]);
        out.push(sample![&x, 1, 0, tensor(f, &[1, 5], 2)]);
        out.push(sample![&x, 2, 1, (), tensor(f, &[3, 2], 2)]);
        out.push(sample![&x, 1, 1, tensor(f, &[3, 2], 2), tensor(f, &[3, 1], 3)]);
        out
    }

    pub(crate) fn traces() -> Vec<Sample> {
        let f = DType::F32;
        vec![
            sample![tensor(f, &[3, 4], 1)],
            sample![transposed(f, &[5, 3], 1)],
            sample![tensor(DType::I32, &[3, 3], 1)],
            sample![tensor(f, &[0, 3], 1)],
            sample![tensor(DType::C64, &[2, 2], 1)],
            sample![tensor(f, &[3], 1)],
        ]
    }

    pub(crate) fn area_samples(points: bool) -> Vec<Sample> {
        let f = DType::F32;
        let mut out = Vec::new();
        for y in [tensor(f, &[3, 4], 1), transposed(f, &[4, 4], 2)] {
            if points {
                out.push(sample![&y, tensor(f, &[4], 3)]);
                out.push(sample![&y, transposed(f, &y.layout().sizes, 3), 0]);
            } else {
                out.push(sample![&y]);
                out.push(sample![&y, 0.5, 0]);
            }
        }
        if !points {
            let infinite = [1.0, f32::INFINITY, 2.0, f32::NEG_INFINITY, 1.0, 3.0];
            out.push(sample![RawTensor::from_slice(&infinite, &[2, 3]), 2.0]);
            out.push(sample![RawTensor::from_slice(&[127i8, -128, 5, 100, 27, 9], &[2, 3])]);
            out.push(sample![tensor(DType::F16, &[3, 1], 1)]);
        }
        out
    }

    pub(crate) fn logs() -> Samples {
        let mut out = along(REAL);
        out.push(sample![transposed(DType::C64, &[3, 4], 1), 0]);
        out.push(sample![tensor(DType::C128, &[3, 4], 1), 1]);
        out
    }
}
