//! Powers: `pow`, `float_power`, `ldexp`.

use crate::pointwise::{Metas, Promotion, Result, common, compute, infer, input, inputs, operands, own, row_form_with};
use crate::support::composite::composite;
use crate::support::promote::{Operand, to_float};
use crate::support::{ValArgs, Vals, emit, ensure, to};
use restride_ir::{Args, Call, Emit, Meta, OpDef, OpError, RowForm, Scalar};
use restride_kernels::pointwise::{self as k, Input, Pointwise};
use restride_tensor::DType::*;
use smallvec::smallvec;

/// Shape rule of powers: integers refuse a negative plain number as the exponent.
fn infer_pow(a: &Args<'_, Meta>) -> Metas {
    let out = infer(a, &[0, 1], &[], Promotion::NoBool, &k::POW)?;
    if let Operand::Number(Scalar::Int(e)) = Operand::read(a, 1)?
        && e < 0
        && out[0].dtype.is_int()
    {
        return Err(OpError::new("Integers to negative integer powers are not allowed."));
    }
    Ok(out)
}
/// A plain number raised to a tensor: PyTorch's result has row-major strides.
fn infer_number_pow(a: &Args<'_, Meta>, infer: restride_ir::InferFn) -> Metas {
    let out = infer(a)?;
    Ok(smallvec![Meta::contiguous(out[0].dtype, out[0].sizes())])
}
/// The function for the most common exponents: products and roots.
fn special(dtype: restride_tensor::DType, exponent: Scalar) -> Option<&'static Pointwise> {
    let whole = !dtype.is_float() && !dtype.is_complex();
    match exponent.as_f64() {
        _ if matches!(exponent, Scalar::Complex(_)) => None,
        2.0 => Some(&k::SQUARE),
        3.0 if !dtype.is_complex() => Some(&k::CUBE),
        0.5 if !whole => Some(&k::SQRT),
        -0.5 if !whole => Some(&k::RSQRT),
        -1.0 if !whole => Some(&k::RECIPROCAL),
        _ => None,
    }
}
fn pow_rows(a: &Args<'_, Meta>) -> Option<RowForm> {
    let dtype = common(&operands(a, &[0, 1]).ok()?, Promotion::NoBool).ok()?;
    match special(dtype, a.scalar(1).ok()?) {
        Some(op) => row_form_with(a, dtype, &[0], &[], op),
        None => row_form_with(a, dtype, &[0, 1], &[], &k::POW),
    }
}
/// Kernel of powers.
fn run_pow(c: &Call<'_>) -> Result<()> {
    let dtype = common(&operands(&c.args, &[0, 1])?, Promotion::NoBool)?;
    let x = input(&c.args, 0)?;
    let exponent = match input(&c.args, 1)? {
        Input::Number(e) => e,
        y => return compute(c, &k::POW, dtype, &[x, y]),
    };
    if dtype.is_complex() && matches!(exponent, Scalar::Int(0) | Scalar::Float(0.0)) {
        return crate::create::put(Scalar::Int(1), &c.outs[0]);
    }
    match special(dtype, exponent) {
        Some(op) => compute(c, op, dtype, &[x]),
        None => compute(c, &k::POW, dtype, &[x, Input::Number(exponent)]),
    }
}

/// `float_power` computes every operand in double precision.
fn infer_float_power(a: &Args<'_, Meta>) -> Metas {
    let operands = operands(a, &[0, 1])?;
    let dtype = if operands.iter().any(|o| o.dtype().is_complex()) { C128 } else { F64 };
    Ok(smallvec![Meta::new(dtype, crate::pointwise::layout(&operands, dtype)?)])
}
fn run_float_power(c: &Call<'_>) -> Result<()> {
    compute(c, &k::POW, c.outs[0].dtype(), &inputs(&c.args, &[0, 1])?)
}

/// `ldexp`: the first operand times two to the second. By a whole number it is rounded once, also where the power has no float; a
/// power of floats has their type.
fn ldexp(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, exponent) = (*a.tensor(0)?, *a.tensor(1)?);
    let (own, given) = (to_float(e.meta(x).dtype), e.meta(exponent).dtype);
    ensure!(given != Bool, "\"ldexp_cpu_exp\" not implemented for 'Bool'");
    if !given.is_int() || own.is_complex() {
        let exponent = if given.is_int() { emit!(e, "aten.to.dtype", exponent, own)? } else { exponent };
        let power = emit!(e, "aten.pow.Scalar", 2.0, exponent)?;
        return Ok(smallvec![emit!(e, "aten.mul.Tensor", x, power)?]);
    }
    // The exponent is a C `int`. Singles are exact as doubles times a power; doubles take several, the largest last: only that rounds.
    let (parts, most) = if own == F64 { (3, 1000) } else { (1, 400) };
    let x = to(e, x, own)?;
    let (mut y, mut rest) = (to(e, x, F64)?, to(e, exponent, I32)?);
    let mut powers = Vec::new();
    for _ in 0..parts {
        let part = emit!(e, "aten.clamp.default", rest, -most, most)?;
        rest = emit!(e, "aten.sub.Tensor", rest, part)?;
        let part = to(e, part, F64)?;
        powers.push(emit!(e, "aten.pow.Scalar", 2.0, part)?);
    }
    for power in powers.into_iter().rev() {
        y = emit!(e, "aten.mul.Tensor", y, power)?;
    }
    Ok(smallvec![to(e, y, own)?])
}

pub(crate) static OPS: &[OpDef] = table![
    own!("pow.Tensor_Tensor", infer_pow, run_pow, (0, 1), positive_pairs),
    own!("pow.Tensor_Scalar", infer_pow, run_pow, (0), powers).in_rows(|a, _| pow_rows(a)),
    own!("pow.Scalar", |a| infer_number_pow(a, infer_pow), run_pow, (1), bases),
    own!("float_power.Tensor_Tensor", infer_float_power, run_float_power, (), positive_pairs),
    own!("float_power.Tensor_Scalar", infer_float_power, run_float_power, (), powers),
    own!("float_power.Scalar", |a| infer_number_pow(a, infer_float_power), run_float_power, (), bases),
    composite!(ldexp, s_ldexp_tensor(), "ldexp.Tensor"),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    use super::*;
    pub(super) use crate::pointwise::samples::*;
    pub(super) use crate::support::samples::*;

    pub(crate) fn powers() -> Vec<Sample> {
        let mut out = Vec::new();
        for e in [2.0, 3.0, 0.5, -0.5, -1.0, 1.7, 0.0] {
            for t in every_layout(REAL, 0.1, 3.0).into_iter().take(4) {
                out.push(sample![t, e]);
            }
        }
        for e in [0, 1, 2, 3, 5] {
            out.push(sample![tensor(I64, &[7], 1), e]);
            out.push(sample![tensor(U8, &[7], 1), e]);
            out.push(sample![tensor(F32, &[7], 1), e]);
            out.push(sample![tensor(C64, &[7], 1), e]);
        }
        out.push(sample![tensor(I64, &[7], 1), 2.0]);
        out.extend([F32, C64].map(|t| sample![in_range(t, Layout::contiguous(&[7]), 1, 0.1, 3.0), complex(1.0, 2.0)]));
        out
    }

    pub(crate) fn bases() -> Vec<Sample> {
        let mut out = number_first(REAL);
        for base in [2.0.arg(), (-2).arg(), complex(1.0, 1.0)] {
            out.push(sample![base, tensor(C64, &[7], 1)]);
        }
        out.push(sample![complex(1.0, 1.0), tensor(F32, &[7], 1)]);
        out
    }

    pub(crate) fn positive_pairs() -> Vec<Sample> {
        let pair = |d, seed, b: &[i64]| {
            sample![
                in_range(d, Layout::contiguous(&[2, 3]), seed, 0.1, 3.0),
                in_range(d, Layout::contiguous(b), seed + 1, -2.0, 2.5)
            ]
        };
        let mut out = vec![pair(F32, 1, &[2, 3]), pair(F64, 3, &[3]), pair(F16, 5, &[]), pair(BF16, 7, &[2, 1])];
        out.push(sample![tensor(I64, &[6], 1), in_range(I64, Layout::contiguous(&[6]), 2, 0.0, 5.0)]);
        out.push(sample![tensor(I32, &[6], 1), in_range(F32, Layout::contiguous(&[]), 2, 1.0, 2.0)]);
        out.push(sample![tensor(C64, &[6], 1), tensor(C64, &[6], 2)]);
        out
    }

    /// Powers that have no float of their own.
    fn exponents() -> RawTensor {
        RawTensor::from_slice(&[[200i64, 255, -200, -140], [1500, 2090, -1040, 1 << 40]].concat(), &[2, 1, 4])
    }

    pub(crate) fn s_ldexp_tensor() -> Samples {
        vec![
            sample![tensor(F32, &[2, 3], 1), tensor(I64, &[3], 2)],
            sample![tensor(F64, &[3], 1), tensor(I64, &[3], 2)],
            sample![tensor(I64, &[3], 1), tensor(I64, &[3], 2)],
            sample![RawTensor::from_slice(&[1e-30f32, -0.0, 1e30, 3.0], &[4]), exponents()],
            sample![RawTensor::from_slice(&[1e-300f64, 5e-324, -0.0, 1.1e-10], &[4]), exponents()],
            sample![RawTensor::from_slice(&[1.75f64, 1.1e-20, 1e308, 1.0], &[4]), exponents()],
            sample![tensor(F32, &[3], 1), tensor(Bool, &[3], 2)],
            sample![tensor(F16, &[2, 3], 1), tensor(I32, &[3], 2)],
            sample![tensor(BF16, &[], 1), tensor(I64, &[3], 2)],
            sample![tensor(F16, &[3], 1), tensor(F32, &[3], 2)],
            sample![tensor(F64, &[3], 1), tensor(F16, &[3], 2)],
            sample![tensor(F16, &[3], 1), tensor(BF16, &[3], 2)],
            sample![tensor(BF16, &[3], 1), tensor(BF16, &[3], 2)],
        ]
    }
}
