//! Random integers: `randint`, `random`, and permutations.

use crate::create::check_sizes;
use crate::random::{drawn, draws, like, one, same, sized};
use crate::support::promote::name;
use crate::support::{Metas, Result, ensure, fresh};
use restride_ir::{Args, Call, Meta, OpDef, OpError};
use restride_kernels::random::{self as k};
use restride_kernels::support::scratch::room;
use restride_tensor::DType;
use smallvec::smallvec;

/// Checked bounds of random integers for an element type.
fn bounds(low: i64, high: i64, dtype: DType) -> Result<(i64, i64)> {
    ensure!(low < high, "random_ expects 'from' to be less than 'to', but got from={low} >= to={high}");
    let (least, most): (i64, i64) = match dtype {
        DType::Bool => (0, 1),
        DType::U8 => (0, 255),
        DType::I8 => (-128, 127),
        DType::I16 => (-32768, 32767),
        DType::I32 => (i32::MIN as i64, i32::MAX as i64),
        DType::F16 => (-65504, 65504),
        d if d.is_complex() => {
            return Err(OpError::new(format!("random integers are not implemented for '{}'", name(d))));
        }
        _ => (i64::MIN, i64::MAX),
    };
    ensure!(low >= least && low <= most, "from is out of bounds for {}", dtype.torch_name());
    ensure!(high > least && high - 1 <= most, "to - 1 is out of bounds for {}", dtype.torch_name());
    Ok((low, high))
}
/// Bounds from argument positions; without `low` the lower bound is 0.
fn range<V>(a: &Args<'_, V>, low: Option<usize>, high: usize, dtype: DType) -> Result<(i64, i64)> {
    bounds(low.map_or(Ok(0), |i| a.int(i))?, a.int(high)?, dtype)
}
fn integers(c: &Call<'_>, (low, high): (i64, i64)) -> Result<()> {
    k::integers(&draws(c.ctx), low, high, &c.outs[0], c.ctx.threads);
    Ok(())
}
fn infer_randint(a: &Args<'_, Meta>, low: Option<usize>, high: usize) -> Metas {
    let m = sized(a, high + 1, DType::I64)?;
    range(a, low, high, m.dtype)?;
    one(m)
}
fn infer_randint_like(a: &Args<'_, Meta>, low: Option<usize>, high: usize) -> Metas {
    let m = like(a, high + 1)?;
    range(a, low, high, m.dtype)?;
    one(m)
}
fn infer_randint_like_tensor(a: &Args<'_, Meta>) -> Metas {
    ensure!(a.tensor(1)?.layout.numel() == 1, "randint_like: high must be a scalar tensor");
    one(like(a, 2)?)
}
fn run_randint_like_tensor(c: &Call<'_>) -> Result<()> {
    let high = c.args.tensor(1)?;
    let first: restride_ir::Ints = smallvec![0; high.sizes().len()];
    let high = high.get(&first).as_i64();
    integers(c, bounds(0, high, c.outs[0].dtype())?)
}

/// Bounds of `random` without arguments: the type's whole range, or the integers that a float holds exactly.
fn whole(dtype: DType) -> Result<(i64, i64)> {
    Ok(match dtype {
        DType::Bool => (0, 2),
        DType::U8 => (0, 256),
        DType::I8 => (0, 128),
        DType::I16 => (0, 1 << 15),
        DType::I32 => (0, 1 << 31),
        DType::I64 => (0, i64::MAX),
        DType::F16 => (0, (1 << 11) + 1),
        DType::BF16 => (0, (1 << 8) + 1),
        DType::F32 => (0, (1 << 24) + 1),
        DType::F64 => (0, (1 << 53) + 1),
        DType::C64 | DType::C128 => return bounds(0, 1, dtype),
    })
}
fn infer_random(a: &Args<'_, Meta>, from: bool, to: bool) -> Metas {
    let m = same(a)?;
    random_range(a, from, to, m.dtype)?;
    one(m)
}
fn random_range<V>(a: &Args<'_, V>, from: bool, to: bool, dtype: DType) -> Result<(i64, i64)> {
    match (from, to) {
        (false, false) => whole(dtype),
        (false, true) => range(a, None, 1, dtype),
        _ if !a.is_none(2) => range(a, Some(1), 2, dtype),
        _ => bounds(a.int(1)?, whole(dtype)?.1, dtype),
    }
}

fn infer_randperm(a: &Args<'_, Meta>) -> Metas {
    let n = a.int(0)?;
    ensure!(n >= 0, "n must be non-negative, got {n}");
    let dtype = a.opt_dtype(1)?.unwrap_or(DType::I64);
    check_sizes(dtype, &[n])?;
    let most = match dtype {
        DType::U8 => 1 << 8,
        DType::I8 => 1 << 7,
        DType::I16 => 1 << 15,
        DType::I32 => 1 << 31,
        DType::F16 => (1 << 11) + 1,
        DType::BF16 => (1 << 8) + 1,
        DType::F32 => (1 << 24) + 1,
        DType::F64 => (1 << 53) + 1,
        DType::I64 => i64::MAX,
        _ => return Err(OpError::new(format!("randperm is not implemented for '{}'", name(dtype)))),
    };
    ensure!(n <= most, "n is too large for result tensor type: '{}'", name(dtype));
    one(fresh(dtype, &[n]))
}

/// Declares draws of integers below `high`, which follows `low` at position `$at`.
macro_rules! below {
    ($schema:literal, $infer:ident, $low:expr, $at:literal, $samples:expr) => {
        drawn!(
            $schema,
            |a| $infer(a, $low, $at),
            |c| integers(c, range(&c.args, $low, $at, c.outs[0].dtype())?),
            $samples
        )
    };
}
/// Declares the overloads that fill argument 0: which of the two bounds a call has.
macro_rules! filled {
    ($schema:literal, $from:literal, $to:literal, $samples:expr) => {
        drawn!(
            $schema,
            |a| infer_random(a, $from, $to),
            |c| integers(c, random_range(&c.args, $from, $to, c.outs[0].dtype())?),
            $samples
        )
    };
}

pub(crate) static OPS: &[OpDef] = table![
    below!("randint", infer_randint, None, 0, || randints(false)),
    below!("randint.low", infer_randint, Some(0), 1, || randints(true)),
    below!("randint_like", infer_randint_like, None, 1, || randint_likes(false)),
    drawn!("randint_like.Tensor", infer_randint_like_tensor, run_randint_like_tensor, s_randint_like_tensor).failing(),
    below!("randint_like.low_dtype", infer_randint_like, Some(1), 2, || randint_likes(true)),
    drawn!(
        "randperm",
        infer_randperm,
        |c| {
            k::permutation(&draws(c.ctx), &c.outs[0]);
            Ok(())
        },
        |_, outs| Ok(room::<i64>(outs[0].layout.numel() as usize)),
        permutations
    ),
    filled!("random", false, false, || randoms(&[])),
    filled!("random.to", false, true, || randoms(&[2])),
    filled!("random.from", true, true, || randoms(&[0, 2])),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    use crate::random::samples::forms;
    pub(super) use crate::support::samples::*;

    pub(crate) fn randints(low: bool) -> Vec<Sample> {
        let mut out = if low {
            vec![sample![-3, 5, [2, 3]], sample![5, 5, [2]], sample![i64::MIN, i64::MAX, [2]], sample![0, 1, [0]]]
        } else {
            vec![sample![5, [2, 3]], sample![0, [2]], sample![i64::MAX, NO]]
        };
        for d in [DType::I32, DType::U8, DType::F32, DType::F16, DType::Bool] {
            out.push(if low { sample![0, 2, [3], d] } else { sample![2, [3], d] });
        }
        out
    }

    pub(crate) fn randint_likes(low: bool) -> Vec<Sample> {
        let mut tensors = forms();
        tensors.push(tensor(DType::I64, &[2, 3], 1));
        tensors.into_iter().map(|t| if low { sample![t, -2, 5] } else { sample![t, 5] }).collect()
    }

    pub(crate) fn randoms(bounds: &'static [i64]) -> Vec<Sample> {
        let mut tensors = forms();
        tensors.extend([DType::I64, DType::U8, DType::Bool, DType::I32].map(|d| tensor(d, &[4], 1)));
        let arg = |&b: &i64| crate::support::samples::IntoArg::arg(b);
        tensors
            .into_iter()
            .map(|t| {
                let mut s = sample![t];
                s.args.extend(bounds.iter().map(arg));
                s
            })
            .collect()
    }

    pub(crate) fn permutations() -> Vec<Sample> {
        vec![sample![5], sample![0], sample![7, DType::F32], sample![300, DType::U8], sample![-1]]
    }

    pub(crate) fn s_randint_like_tensor() -> Samples {
        vec![sample![tensor(DType::I64, &[2, 3], 1), ints(&[5], &[])]]
    }
}
