//! Reductions that select an element: `max`, `argmax`, `median`, `mode`, quantiles.

use crate::reduce::{kept, marked, nonempty};
use crate::support::promote::{AsTensor, name};
use crate::support::scratch::stored;
use crate::support::{Metas, Result, close, ensure, exact, fail, fresh, one};
use restride_ir::{Args, Call, Exactness, Kernel, Meta, OpDef, OpError, OverlapCheck, Scalar};
use restride_kernels::reduce::pick::{Between, Pick, equal, pick, pick_room, quantiles, quantiles_room};
use restride_kernels::reduce::{Reduction, reduce, reduce_room};
use restride_kernels::support::scratch::{Temp, room};
use restride_tensor::{DType, Layout, RawTensor};
use smallvec::smallvec;

/// Marks the dimension at a position, or all dimensions without one.
fn marks<V: AsTensor>(a: &Args<'_, V>, dim: Option<usize>) -> Result<crate::reduce::Marks> {
    let rank = a.tensor(0)?.layout().rank();
    match dim.map(|i| a.opt_int(i)).transpose()?.flatten() {
        None => Ok(smallvec![true; rank]),
        Some(d) => marked(Some(&[d]), rank),
    }
}

fn no_complex(dtype: DType) -> Result<()> {
    ensure!(!dtype.is_complex(), "not implemented for '{}'", name(dtype));
    Ok(())
}
fn no_bool(dtype: DType) -> Result<()> {
    ensure!(dtype != DType::Bool, "not implemented for 'Bool'");
    no_complex(dtype)
}

/// Shape rule for values and indices over one dimension.
fn infer_dim(a: &Args<'_, Meta>) -> Metas {
    let x = a.tensor(0)?;
    no_complex(x.dtype)?;
    let marks = marks(a, Some(1))?;
    nonempty(x, &marks, true)?;
    let sizes = kept(x.sizes(), &marks, a.opt_bool(2)?.unwrap_or(false));
    Ok(smallvec![fresh(x.dtype, &sizes), fresh(DType::I64, &sizes)])
}
fn infer_number(a: &Args<'_, Meta>) -> Metas {
    no_bool(a.tensor(0)?.dtype)?;
    infer_dim(a)
}
fn run_dim(c: &Call<'_>, what: Pick) -> Result<()> {
    let marks = marks(&c.args, Some(1))?;
    pick(c.args.tensor(0)?, &marks, what, Some(&c.outs[0]), Some(&c.outs[1]), c.ctx.threads).map_err(OpError::new)
}

fn infer_index(a: &Args<'_, Meta>) -> Metas {
    let x = a.tensor(0)?;
    no_bool(x.dtype)?;
    let marks = marks(a, Some(1))?;
    nonempty(x, &marks, !a.is_none(1))?;
    one(fresh(DType::I64, &kept(x.sizes(), &marks, a.opt_bool(2)?.unwrap_or(false))))
}
fn run_index(c: &Call<'_>, what: Pick) -> Result<()> {
    let marks = marks(&c.args, Some(1))?;
    pick(c.args.tensor(0)?, &marks, what, None, Some(&c.outs[0]), c.ctx.threads).map_err(OpError::new)
}

fn infer_value(a: &Args<'_, Meta>) -> Metas {
    let x = a.tensor(0)?;
    no_bool(x.dtype)?;
    ensure!(x.dtype.is_float() || !x.sizes().contains(&0), "the median of no integers");
    one(fresh(x.dtype, &[]))
}
fn run_value(c: &Call<'_>, what: Pick) -> Result<()> {
    let marks = marks(&c.args, None)?;
    pick(c.args.tensor(0)?, &marks, what, Some(&c.outs[0]), None, c.ctx.threads).map_err(OpError::new)
}

/// Shape rule of minimum and maximum together; `dim` is the position of the dimension, which `keepdim` follows.
fn infer_both(a: &Args<'_, Meta>, dim: Option<usize>) -> Metas {
    let x = a.tensor(0)?;
    no_complex(x.dtype)?;
    let marks = marks(a, dim)?;
    nonempty(x, &marks, dim.is_some_and(|d| !a.is_none(d)))?;
    let keep = dim.map(|d| a.opt_bool(d + 1)).transpose()?.flatten().unwrap_or(false);
    let sizes = kept(x.sizes(), &marks, keep);
    Ok(smallvec![fresh(x.dtype, &sizes), fresh(x.dtype, &sizes)])
}
fn run_both(c: &Call<'_>, dim: Option<usize>) -> Result<()> {
    let x = c.args.tensor(0)?;
    let marks = marks(&c.args, dim)?;
    for (what, out) in [Reduction::Min, Reduction::Max].into_iter().zip(c.outs) {
        reduce(x, &marks, what, x.dtype(), out, c.ctx.threads).map_err(OpError::new)?;
    }
    Ok(())
}

/// The interpolation of a quantile between two elements.
fn between<V>(a: &Args<'_, V>) -> Result<Between> {
    Ok(match a.opt_str(4)?.unwrap_or("linear") {
        "linear" => Between::Linear,
        "lower" => Between::Lower,
        "higher" => Between::Higher,
        "midpoint" => Between::Midpoint,
        "nearest" => Between::Nearest,
        other => {
            return fail(format!(
                "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {other}"
            ));
        }
    })
}
fn infer_quantile(a: &Args<'_, Meta>) -> Metas {
    let x = a.tensor(0)?;
    ensure!(matches!(x.dtype, DType::F32 | DType::F64), "quantile() input tensor must be either float or double dtype");
    ensure!(!x.sizes().contains(&0), "quantile() input tensor must be non-empty");
    between(a)?;
    let marks = marks(a, Some(2))?;
    let row: i64 = x.sizes().iter().zip(&marks).filter(|(_, m)| **m).map(|(n, _)| n).product();
    ensure!(row <= 1 << 24, "quantile() input tensor is too large");
    let mut sizes = kept(x.sizes(), &marks, a.opt_bool(3)?.unwrap_or(false));
    if let Some(q) = a.as_tensor(1) {
        ensure!(q.layout.rank() < 2, "quantile() q must be a scalar or 1D tensor");
        ensure!(q.dtype == x.dtype, "quantile() q tensor must be same dtype as the input tensor");
        sizes.splice(0..0, q.sizes().iter().copied());
        // The quantiles of a row are adjacent in memory.
        let order: Vec<usize> = (q.layout.rank()..sizes.len()).chain(0..q.layout.rank()).collect();
        return one(Meta::new(x.dtype, Layout::permuted(&sizes, &order)));
    }
    one(fresh(x.dtype, &sizes))
}
fn run_quantile(c: &Call<'_>, ignore_nan: bool) -> Result<()> {
    let q = match c.args.as_tensor(1) {
        Some(q) => restride_kernels::support::convert::gather::<f64>(*q),
        None => Temp::filled(1, c.args.float(1)?),
    };
    ensure!(q.iter().all(|q| (0.0..=1.0).contains(q)), "quantile() q values must be in the range [0, 1]");
    let marks = marks(&c.args, Some(2))?;
    quantiles(c.args.tensor(0)?, &marks, &q, between(&c.args)?, ignore_nan, &c.outs[0]).map_err(OpError::new)
}

fn run_equal(c: &Call<'_>) -> Result<Scalar> {
    let (a, b) = (c.args.tensor(0)?, c.args.tensor(1)?);
    ensure!(
        a.dtype() == b.dtype(),
        "Expected object of data type {} but got data type {} for argument 'other'",
        name(a.dtype()),
        name(b.dtype())
    );
    equal(a, b).map(Scalar::Bool).map_err(OpError::new)
}
fn run_allclose(c: &Call<'_>) -> Result<Scalar> {
    use restride_kernels::pointwise::{IS_CLOSE, Input, decide};
    let (a, b) = (c.args.tensor(0)?, c.args.tensor(1)?);
    ensure!(a.dtype() == b.dtype(), "{} did not match {}", name(a.dtype()), name(b.dtype()));
    let sizes = crate::support::strides::broadcast_sizes(&[a.sizes(), b.sizes()])?;
    let close = RawTensor::zeros(DType::Bool, Layout::contiguous(&sizes));
    let number = |i: usize, default: f64| {
        Ok::<_, OpError>(Input::Parameter(Scalar::Float(c.args.opt_float(i)?.unwrap_or(default))))
    };
    let nan = Input::Parameter(Scalar::Int(c.args.opt_bool(4)?.unwrap_or(false) as i64));
    let inputs = [Input::View(*a), Input::View(*b), number(2, 1e-5)?, number(3, 1e-8)?, nan];
    decide(&IS_CLOSE, a.dtype(), &inputs, &close.write().view_mut(), 1).map_err(|e| OpError::new(e.to_string()))?;
    Ok(Scalar::Bool(close.to_elements::<u8>().iter().all(|&x| x != 0)))
}
fn run_is_nonzero(c: &Call<'_>) -> Result<Scalar> {
    let x = c.args.tensor(0)?;
    match x.numel() {
        0 => fail("Boolean value of Tensor with no values is ambiguous"),
        1 => Ok(Scalar::Bool(x.get(&vec![0; x.sizes().len()]).as_bool())),
        _ => fail("Boolean value of Tensor with more than one value is ambiguous"),
    }
}

fn pick_scratch(a: &Args<'_, Meta>, dim: Option<usize>, what: Pick) -> Result<usize> {
    Ok(pick_room(stored(a.tensor(0)?), &marks(a, dim)?, what))
}
/// Scratch bytes; minimum and maximum are computed one after the other.
fn both_scratch(a: &Args<'_, Meta>, outs: &[Meta], dim: Option<usize>) -> Result<usize> {
    let x = a.tensor(0)?;
    Ok(reduce_room(stored(x), &marks(a, dim)?, Reduction::Max, x.dtype, stored(&outs[0])))
}
fn quantile_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let q = a.as_tensor(1).map_or(1, |q| q.layout.numel());
    Ok(room::<f64>(q as usize) + quantiles_room(stored(a.tensor(0)?), &outs[0].layout))
}

macro_rules! number {
    ($schema:literal, $run:expr, $samples:expr) => {
        OpDef {
            kernel: Kernel::Scalar($run),
            exactness: Exactness::Exact,
            samples: samples!($samples),
            ..OpDef::new($schema)
        }
    };
}

/// Declares an operator that picks elements: schema, shape rule, kernel, position of the dimension, choice, sample calls.
macro_rules! pick {
    ($schema:literal, $infer:expr, $run:ident, $dim:expr, $what:expr, $samples:expr) => {
        exact($schema, $infer, |c| $run(c, $what), |a, _| pick_scratch(a, $dim, $what), samples!($samples))
    };
}
macro_rules! both {
    ($schema:literal, $dim:expr, $samples:expr) => {
        exact(
            $schema,
            |a| infer_both(a, $dim),
            |c| run_both(c, $dim),
            |a, outs| both_scratch(a, outs, $dim),
            samples!($samples),
        )
    };
}
macro_rules! quantile {
    ($schema:literal, $ignore_nan:literal, $samples:expr) => {
        close($schema, infer_quantile, |c| run_quantile(c, $ignore_nan), quantile_scratch, samples!($samples))
    };
}
const fn unseen(def: OpDef) -> OpDef {
    OpDef { overlap: OverlapCheck::Unseen, ..def }
}

pub(crate) static OPS: &[OpDef] = table![
    unseen(pick!("max.dim", infer_dim, run_dim, Some(1), Pick::Max, dims)),
    unseen(pick!("min.dim", infer_dim, run_dim, Some(1), Pick::Min, dims)),
    pick!("argmax", infer_index, run_index, Some(1), Pick::Max, indices),
    pick!("argmin", infer_index, run_index, Some(1), Pick::Min, indices),
    pick!("median", infer_value, run_value, None, Pick::Median, middle),
    pick!("nanmedian", infer_value, run_value, None, Pick::NanMedian, middle),
    pick!("median.dim", infer_number, run_dim, Some(1), Pick::Median, medians),
    pick!("nanmedian.dim", infer_number, run_dim, Some(1), Pick::NanMedian, medians),
    pick!("mode", infer_dim, run_dim, Some(1), Pick::Mode, modes),
    unseen(both!("aminmax", Some(1), both)),
    both!("_aminmax", None, || over_all(ALL_REAL)),
    both!("_aminmax.dim", Some(1), || over_all(REAL).into_iter().map(|s| with_last(s, -1)).collect()),
    quantile!("quantile", false, || quantile_samples(true)).failing(),
    quantile!("quantile.scalar", false, || quantile_samples(false)),
    quantile!("nanquantile", true, || quantile_samples(true)).failing(),
    quantile!("nanquantile.scalar", true, || quantile_samples(false)),
    number!("equal", run_equal, equals),
    number!("allclose", run_allclose, closes),
    number!("is_nonzero", run_is_nonzero, truths),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::reduce::samples::*;

    pub(crate) fn specials() -> Vec<RawTensor> {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        let rows =
            [[1.0, nan, 2.0], [inf, 0.0, 1.0], [-inf, -inf, -inf], [inf, -inf, nan], [4.0, 3.0, 3.0], [inf, inf, 2.0]];
        vec![
            RawTensor::from_slice(&rows.concat(), &[6, 3]),
            tensor(DType::I64, &[7, 8], 5),
            tensor(DType::Bool, &[3, 4], 5),
        ]
    }

    /// Sample calls over one dimension, including rows with equal and special elements.
    pub(crate) fn dims() -> Vec<Sample> {
        let mut out = over_dim(ALL_REAL);
        for t in specials() {
            out.push(sample![&t, 0]);
            out.push(sample![t, -1, true]);
        }
        out
    }

    pub(crate) fn indices() -> Vec<Sample> {
        let mut out = dims();
        out.extend(over_all(ALL_REAL));
        for t in specials() {
            out.push(sample![&t]);
            out.push(sample![t, (), true]);
        }
        out
    }

    /// Sample rows without equal elements: PyTorch does not specify which of several equal elements it selects.
    pub(crate) fn different(dtypes: &[DType]) -> Vec<RawTensor> {
        let order = |n: usize, step: usize| (0..n).map(|i| (i * step % n) as i64).collect::<Vec<_>>();
        let mut out: Vec<RawTensor> = vec![
            tensor(DType::F32, &[2, 5, 3], 1),
            transposed(DType::F32, &[4, 5], 2),
            strided(DType::F64, &[3, 4], 3),
            tensor(DType::F32, &[], 3),
            tensor(DType::F32, &[2, 0], 3),
        ];
        for &d in dtypes {
            let t = RawTensor::zeros(d, Layout::contiguous(&[3, 7]));
            restride_kernels::support::convert::scatter(&order(21, 8), &t.write().view_mut());
            out.push(t);
        }
        out.push(specials().swap_remove(0).alias(DType::F32, Layout::contiguous(&[5])).expect("the first five"));
        out
    }

    pub(crate) const MANY: [DType; 6] = [DType::F16, DType::BF16, DType::I64, DType::I32, DType::U8, DType::F64];

    pub(crate) fn medians() -> Vec<Sample> {
        different(&MANY).into_iter().flat_map(|t| [sample![&t, -1], sample![t, 0, true]]).collect()
    }

    pub(crate) fn middle() -> Vec<Sample> {
        let mut out: Vec<Sample> = different(&MANY).into_iter().map(|t| sample![t]).collect();
        out.extend(over_all(NO_BOOL));
        out
    }

    pub(crate) fn modes() -> Vec<Sample> {
        let t = ints(&[3, 1, 3, 2, 2, 5, 5, 5, 1, 1, 0, 0], &[3, 4]);
        vec![sample![&t], sample![&t, 0], sample![t, -1, true], sample![tensor(DType::Bool, &[5], 1)]]
    }

    pub(crate) fn both() -> Vec<Sample> {
        let mut out = over_all(ALL_REAL);
        out.extend(dims());
        out.push(sample![tensor(DType::F32, &[3, 4], 1), (), true]);
        out
    }

    pub(crate) fn quantile_samples(tensors: bool) -> Vec<Sample> {
        let (nan, f) = (f32::NAN, DType::F32);
        let mut out = Vec::new();
        let q = RawTensor::from_slice(&[0.0f32, 0.3, 0.5, 1.0], &[4]);
        let some = RawTensor::from_slice(&[1.0f32, nan, 2.0, nan, nan, nan, 3.0, 5.0, 9.0], &[3, 3]);
        for x in [tensor(f, &[3, 5], 1), transposed(f, &[4, 3, 2], 2), tensor(f, &[], 3), some] {
            for how in ["linear", "lower", "higher", "midpoint", "nearest"] {
                if tensors {
                    out.push(sample![&x, &q, -1, false, how]);
                    out.push(sample![&x, RawTensor::from_slice(&[0.4f32], &[]), (), true, how]);
                } else {
                    out.push(sample![&x, 0.37, 0, true, how]);
                    out.push(sample![&x, 0.5, (), false, how]);
                }
            }
        }
        if !tensors {
            out.push(sample![tensor(DType::F64, &[9], 1), 0.25]);
            out.push(sample![tensor(DType::F16, &[9], 1), 0.25]);
            out.push(sample![tensor(f, &[9], 1), 1.25]);
            out.push(sample![tensor(f, &[0], 1), 0.25]);
        }
        out
    }

    pub(crate) fn equals() -> Vec<Sample> {
        let x = tensor(DType::F32, &[2, 3], 1);
        let nan = RawTensor::from_slice(&[f32::NAN], &[1]);
        vec![
            sample![&x, &x],
            sample![&x, tensor(DType::F32, &[2, 3], 2)],
            sample![&x, tensor(DType::F32, &[3, 2], 1)],
            sample![&nan, RawTensor::from_slice(&[f32::NAN], &[1])],
            sample![tensor(DType::I64, &[3], 1), tensor(DType::I64, &[3], 1)],
            sample![tensor(DType::I64, &[0], 1), tensor(DType::I64, &[0], 1)],
        ]
    }

    pub(crate) fn closes() -> Vec<Sample> {
        let mut out = equals();
        out.remove(2);
        out.push(sample![tensor(DType::F32, &[2, 3], 1), tensor(DType::F32, &[3], 1), 10.0, 10.0]);
        out.push(sample![
            RawTensor::from_slice(&[f32::NAN], &[1]),
            RawTensor::from_slice(&[f32::NAN], &[1]),
            0.1,
            0.1,
            true
        ]);
        out
    }

    pub(crate) fn truths() -> Vec<Sample> {
        let f = DType::F32;
        vec![
            sample![tensor(f, &[], 1)],
            sample![ints(&[0], &[1, 1])],
            sample![tensor(f, &[2], 1)],
            sample![tensor(f, &[0], 1)],
        ]
    }
}
