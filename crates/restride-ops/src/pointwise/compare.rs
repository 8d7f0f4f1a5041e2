//! Comparisons, logic and selections.

use crate::pointwise::{
    Metas, Promotion, Result, ask, common, compute, input, layout, not_for, operands, own, row_form, row_form_with,
};
use crate::support::ensure;
use crate::support::promote::{Operand, check_holds, result_type};
use crate::support::strides;
use restride_ir::{Args, Call, Grad, Meta, OpDef, OpError, OverlapCheck, RowForm, Scalar};
use restride_kernels::pointwise::{self as k, Input};
use restride_kernels::support::convert::Kind;
use restride_tensor::{DType, DType::*};
use smallvec::{SmallVec, smallvec};

fn infer_where(a: &Args<'_, Meta>) -> Metas {
    let condition = a.tensor(0)?;
    if !matches!(condition.dtype, Bool | U8) {
        return Err(OpError::new(format!(
            "where expected condition to be a boolean tensor, but got a tensor with dtype {}",
            crate::support::promote::name(condition.dtype)
        )));
    }
    let mut all = operands(a, &[0, 1, 2])?;
    let dtype = result_type(&all[1..])?;
    // The condition stays as it is.
    all[0] = Operand::Tensor(dtype, &condition.layout);
    Ok(smallvec![Meta::new(dtype, layout(&all, dtype)?)])
}
fn run_where(c: &Call<'_>) -> Result<()> {
    let inputs = [input(&c.args, 0)?, input(&c.args, 1)?, input(&c.args, 2)?];
    compute(c, &k::WHERE, c.outs[0].dtype(), &[inputs[0].as_mask(), inputs[1], inputs[2]])
}

/// A choice between singles.
fn where_rows(a: &Args<'_, Meta>, results: &[Meta]) -> Option<RowForm> {
    row_form_with(a, results[0].dtype, &[0, 1, 2], &[], &k::WHERE)
}

/// `masked_fill` returns a row-major copy of its first operand in the same element type.
fn infer_masked_fill(a: &Args<'_, Meta>) -> Metas {
    let (x, mask) = (a.tensor(0)?, a.tensor(1)?);
    ensure!(
        mask.dtype == Bool,
        "masked_fill_ only supports boolean masks, but got mask with dtype {}",
        crate::support::promote::name(mask.dtype)
    );
    match Operand::read(a, 2)? {
        Operand::Number(s) => check_holds(x.dtype, s)?,
        Operand::Tensor(_, l) if l.rank() > 0 => {
            return Err(OpError::new(format!(
                "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {} dimension(s).",
                l.rank()
            )));
        }
        Operand::Tensor(..) => {}
    }
    let sizes = strides::broadcast_sizes(&[x.sizes(), mask.sizes()])?;
    Ok(smallvec![Meta::contiguous(x.dtype, &sizes)])
}
fn run_masked_fill(c: &Call<'_>) -> Result<()> {
    let dtype = c.outs[0].dtype();
    let value = match c.args.as_tensor(2) {
        Some(v) => v.get(&[]),
        None => c.args.scalar(2)?,
    };
    check_holds(dtype, value)?;
    let mask = input(&c.args, 1)?.as_mask();
    compute(c, &k::MASKED_FILL, dtype, &[input(&c.args, 0)?, mask, Input::Number(value)])
}
fn masked_fill_rows(a: &Args<'_, Meta>, results: &[Meta]) -> Option<RowForm> {
    row_form_with(a, results[0].dtype, &[0, 1, 2], &[], &k::MASKED_FILL)
}

/// Positions of the bounds of `clamp` and its like that are not `None`.
fn bounds<V>(a: &Args<'_, V>, at: &[usize]) -> SmallVec<[usize; 3]> {
    std::iter::once(0).chain(at.iter().copied().filter(|&i| !a.is_none(i))).collect()
}
/// Position of a missing lower bound, as in `clamp_max`.
const NO_LOWER: usize = usize::MAX;
/// Smallest and largest number of an integer type.
fn range(dtype: DType) -> Option<(i64, i64)> {
    match dtype {
        U8 => Some((0, 255)),
        I8 => Some((i8::MIN as i64, i8::MAX as i64)),
        I16 => Some((i16::MIN as i64, i16::MAX as i64)),
        I32 => Some((i32::MIN as i64, i32::MAX as i64)),
        I64 => Some((i64::MIN, i64::MAX)),
        _ => None,
    }
}
/// Refuses a bound that every number of the integer type violates.
fn check_bound(dtype: DType, s: Scalar, lower: bool) -> Result<()> {
    let Some((least, most)) = range(dtype) else { return check_holds(dtype, s) };
    let x = s.as_i64();
    if if lower { x > most } else { x < least } {
        let which = if lower { "min" } else { "max" };
        return Err(OpError::new(format!(
            "Clamp {which} value {x} is outside the representable range of {}",
            crate::support::promote::name(dtype)
        )));
    }
    Ok(())
}
/// A bound limited to the element type's range.
fn within(dtype: DType, x: Input<'_>) -> Input<'_> {
    match (x, range(dtype)) {
        (Input::Number(s), Some((least, most))) => Input::Number(Scalar::Int(s.as_i64().clamp(least, most))),
        _ => x,
    }
}
/// Shape rule of `clamp`; `lower` is the position of the lower bound, if it has one.
fn infer_clamp(a: &Args<'_, Meta>, at: &[usize], lower: usize) -> Metas {
    let at = bounds(a, at);
    ensure!(at.len() != 1, "torch.clamp: At least one of 'min' or 'max' must not be None");
    let all = operands(a, &at)?;
    let dtype = common(&all, Promotion::Same)?;
    // With one tensor as its bound, a clamp is a maximum or minimum, which `bool` supports.
    let extreme = at.len() == 2 && a.as_tensor(1).is_some();
    if dtype == Bool && !extreme {
        return not_for(dtype);
    }
    for (bound, i) in all.iter().zip(&at).skip(1) {
        if let Operand::Number(s) = bound {
            check_bound(dtype, *s, *i == lower)?;
        }
    }
    if !k::CLAMP.takes(Kind::of(dtype)) {
        return not_for(dtype);
    }
    // Plain numbers are parameters here, not 0-d tensors.
    let tensors: SmallVec<[Operand<'_>; 3]> = all.into_iter().filter(|o| matches!(o, Operand::Tensor(..))).collect();
    Ok(smallvec![Meta::new(dtype, layout(&tensors, dtype)?)])
}
fn run_bounds(c: &Call<'_>, lower: bool, upper: bool) -> Result<()> {
    let at: &[usize] = if lower && upper { &[1, 2] } else { &[1] };
    let all = operands(&c.args, &bounds(&c.args, at))?;
    let dtype = common(&all, Promotion::Same)?;
    let x = input(&c.args, 0)?;
    let (lo, hi) = match (lower, upper) {
        (true, true) => (opt_input(c, 1)?, opt_input(c, 2)?),
        (true, false) => (opt_input(c, 1)?, None),
        _ => (None, opt_input(c, 1)?),
    };
    let (lo, hi) = (lo.map(|x| within(dtype, x)), hi.map(|x| within(dtype, x)));
    match (lo, hi) {
        (Some(lo), Some(hi)) => compute(c, &k::CLAMP, dtype, &[x, lo, hi]),
        (Some(lo), None) => compute(c, &k::MAXIMUM, dtype, &[x, lo]),
        (None, Some(hi)) => compute(c, &k::MINIMUM, dtype, &[x, hi]),
        (None, None) => compute(c, &k::IDENTITY, dtype, &[x]),
    }
}
/// The row form of a clamp with these bounds.
fn bound_rows(a: &Args<'_, Meta>, lower: bool, upper: bool) -> Option<RowForm> {
    let at = bounds(a, if lower && upper { &[1, 2] } else { &[1] });
    let last = if lower { 2 } else { 1 };
    let op = match (lower && at.contains(&1), upper && at.contains(&last)) {
        (true, true) => &k::CLAMP,
        (true, false) => &k::MAXIMUM,
        (false, true) => &k::MINIMUM,
        (false, false) => return None,
    };
    row_form(a, &at, &[], Promotion::Same, op)
}
fn opt_input<'a>(c: &Call<'a>, i: usize) -> Result<Option<Input<'a>>> {
    if c.args.is_none(i) { Ok(None) } else { input(&c.args, i).map(Some) }
}

pub(crate) static OPS: &[OpDef] = table![
    own!("where.self", infer_where, run_where, (1, 2), || wheres(false, false)).in_rows(where_rows),
    own!("where.ScalarSelf", infer_where, run_where, (2), || wheres(true, false)).in_rows(where_rows),
    own!("where.ScalarOther", infer_where, run_where, (1), || wheres(false, true)).in_rows(where_rows),
    own!("where.Scalar", infer_where, run_where, (), || wheres(true, true)).graded(Grad::Zero),
    OpDef {
        overlap: OverlapCheck::PartialMask,
        ..own!("masked_fill.Scalar", infer_masked_fill, run_masked_fill, (0), || masked_fills(true))
            .in_rows(masked_fill_rows)
    },
    OpDef {
        overlap: OverlapCheck::PartialMask,
        ..own!("masked_fill.Tensor", infer_masked_fill, run_masked_fill, (0), || masked_fills(false)).failing()
    },
    own!("clamp", |a| infer_clamp(a, &[1, 2], 1), |c| run_bounds(c, true, true), (0), || clamps(true))
        .in_rows(|a, _| bound_rows(a, true, true)),
    own!("clamp.Tensor", |a| infer_clamp(a, &[1, 2], 1), |c| run_bounds(c, true, true), (0, 1, 2), || clamps(false))
        .in_rows(|a, _| bound_rows(a, true, true)),
    own!("clamp_min", |a| infer_clamp(a, &[1], 1), |c| run_bounds(c, true, false), (0), || one_bound(true))
        .in_rows(|a, _| bound_rows(a, true, false)),
    own!("clamp_min.Tensor", |a| infer_clamp(a, &[1], 1), |c| run_bounds(c, true, false), (0, 1), || one_bound(false))
        .in_rows(|a, _| bound_rows(a, true, false)),
    own!("clamp_max", |a| infer_clamp(a, &[1], NO_LOWER), |c| run_bounds(c, false, true), (0), || one_bound(true))
        .in_rows(|a, _| bound_rows(a, false, true)),
    own!("clamp_max.Tensor", |a| infer_clamp(a, &[1], NO_LOWER), |c| run_bounds(c, false, true), (0, 1), || one_bound(
        false
    )),
    ask!("eq.Tensor", (0, 1), k::EQ, || tensors(comparisons(ALL))),
    ask!("eq.Scalar", (0, 1), k::EQ, || with_number(ALL)),
    ask!("ne.Tensor", (0, 1), k::NE, || tensors(comparisons(ALL))),
    ask!("ne.Scalar", (0, 1), k::NE, || with_number(ALL)),
    ask!("lt.Tensor", (0, 1), k::LT, || tensors(comparisons(ALL_REAL))),
    ask!("lt.Scalar", (0, 1), k::LT, || with_number(ALL_REAL)),
    ask!("le.Tensor", (0, 1), k::LE, || tensors(comparisons(ALL_REAL))),
    ask!("le.Scalar", (0, 1), k::LE, || with_number(ALL_REAL)),
    ask!("gt.Tensor", (0, 1), k::GT, || tensors(comparisons(ALL_REAL))),
    ask!("gt.Scalar", (0, 1), k::GT, || with_number(ALL_REAL)),
    ask!("ge.Tensor", (0, 1), k::GE, || tensors(comparisons(ALL_REAL))),
    ask!("ge.Scalar", (0, 1), k::GE, || with_number(ALL_REAL)),
    ask!("logical_and", (0, 1), k::LOGICAL_AND, || binary(ALL)),
    ask!("logical_or", (0, 1), k::LOGICAL_OR, || binary(ALL)),
    ask!("logical_xor", (0, 1), k::LOGICAL_XOR, || binary(ALL)),
    ask!("logical_not", (0), k::LOGICAL_NOT, || special(ALL)),
    ask!("isnan", (0), k::IS_NAN, || special(ALL)),
    ask!("isinf", (0), k::IS_INF, || special(ALL)),
    ask!("isfinite", (0), k::IS_FINITE, || special(ALL)),
    ask!("isposinf", (0), k::IS_POSINF, || special(ALL_REAL)),
    ask!("isneginf", (0), k::IS_NEGINF, || special(ALL_REAL)),
    ask!("signbit", (0), k::SIGN_BIT, || special(ALL_REAL)),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    use super::*;
    pub(super) use crate::pointwise::samples::*;
    pub(super) use crate::support::samples::*;

    pub(crate) fn clamps(numbers: bool) -> Vec<Sample> {
        let mut out = Vec::new();
        for t in every_layout(NO_BOOL, -2.0, 2.0) {
            if numbers {
                out.push(sample![&t, 0, 1]);
                out.push(sample![&t, (), 1]);
                out.push(sample![t, 0.5]);
            } else {
                let d = t.dtype();
                out.push(sample![&t, tensor(d, &[], 3), in_range(d, Layout::contiguous(&[]), 3, 1.0, 2.0)]);
                out.push(sample![t, (), tensor(d, &[], 3)]);
            }
        }
        if !numbers {
            out.push(sample![tensor(F32, &[2, 3], 1), tensor(F32, &[3], 2), tensor(F32, &[2, 1], 3)]);
            out.push(sample![transposed(I64, &[2, 3], 1), tensor(F32, &[3], 2)]);
        } else {
            out.push(sample![tensor(U8, &[4], 1), 0, 300]);
            out.push(sample![tensor(F32, &[4], 1)]);
        }
        out
    }

    pub(crate) fn one_bound(numbers: bool) -> Vec<Sample> {
        let mut out: Vec<Sample> = Vec::new();
        if numbers {
            out.extend(with_number(NO_BOOL));
        } else {
            out.extend(binary(NO_BOOL));
        }
        out
    }

    pub(crate) fn mask(sizes: &[i64], seed: u64) -> restride_tensor::RawTensor {
        tensor(Bool, sizes, seed)
    }

    pub(crate) fn wheres(first: bool, second: bool) -> Vec<Sample> {
        let mut out = Vec::new();
        let cases = [
            (mask(&[2, 3], 1), tensor(F32, &[2, 3], 2), tensor(F32, &[3], 3)),
            (mask(&[3], 1), transposed(F32, &[2, 3], 2), tensor(F64, &[], 3)),
            (expanded(Bool, &[4, 3], 1), tensor(I64, &[1, 3], 2), tensor(F16, &[4, 1], 3)),
            (mask(&[2, 2], 1), tensor(I64, &[2, 2], 2), tensor(I32, &[2, 2], 3)),
            (mask(&[2, 2], 1), tensor(C64, &[2, 2], 2), tensor(F32, &[], 3)),
            (mask(&[], 1), tensor(BF16, &[], 2), tensor(BF16, &[], 3)),
            (mask(&[0, 2], 1), tensor(Bool, &[2], 2), tensor(Bool, &[1], 3)),
            (transposed(Bool, &[3, 4], 1), tensor(F32, &[3, 4], 2), tensor(F32, &[3, 4], 3)),
        ];
        for (c, a, b) in cases {
            for n in [Scalar::Int(3), Scalar::Float(f64::NEG_INFINITY)] {
                match (first, second) {
                    (true, true) => out.push(sample![&c, n, Scalar::Float(0.5)]),
                    (true, false) => out.push(sample![&c, n, &b]),
                    (false, true) => out.push(sample![&c, &a, n]),
                    (false, false) => out.push(sample![&c, &a, &b]),
                }
            }
        }
        out
    }

    pub(crate) fn masked_fills(number: bool) -> Vec<Sample> {
        let mut out = Vec::new();
        let cases = [
            (tensor(F32, &[2, 3], 1), mask(&[2, 3], 2)),
            (transposed(F32, &[2, 3], 1), mask(&[3], 2)),
            (tensor(F32, &[3], 1), mask(&[2, 3], 2)),
            (tensor(I64, &[2, 3], 1), mask(&[], 2)),
            (tensor(F16, &[2, 3], 1), mask(&[2, 1], 2)),
            (tensor(BF16, &[0, 3], 1), mask(&[3], 2)),
            (tensor(C64, &[2], 1), mask(&[2], 2)),
            (tensor(Bool, &[4], 1), mask(&[4], 2)),
        ];
        for (x, m) in cases {
            if number {
                out.push(sample![&x, &m, 1]);
                out.push(sample![&x, &m, -1e9]);
                out.push(sample![&x, &m, f64::NEG_INFINITY]);
            } else {
                out.push(sample![&x, &m, tensor(x.dtype(), &[], 3)]);
                out.push(sample![x, m, tensor(I64, &[], 3)]);
            }
        }
        out
    }
}
