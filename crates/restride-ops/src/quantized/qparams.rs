//! Scales and zero points from the extremes of a tensor or of its rows.

use super::{dtype, quantized, range, single};
use crate::support::composite::composite;
use crate::support::promote::name;
use crate::support::*;
use restride_ir::{DType, Emit, OpDef, Val};
use smallvec::smallvec;

/// The negative part of the smallest elements, and the positive part of the largest.
pub(super) fn parts(e: &mut dyn Emit, min: Val, max: Val) -> Result<(Val, Val)> {
    let (none, nothing) = (emit!(e, "aten.zeros_like.default", min)?, emit!(e, "aten.zeros_like.default", max)?);
    Ok((emit!(e, "aten.minimum.default", min, none)?, emit!(e, "aten.maximum.default", max, nothing)?))
}

/// Scale and zero point in the types that PyTorch gives them.
fn pair(e: &mut dyn Emit, scale: Val, zero: Val) -> Vals {
    Ok(smallvec![to(e, scale, DType::F64)?, to(e, zero, DType::I64)?])
}

/// `(input, quant_min, quant_max, eps, dtype)`
fn choose(e: &mut dyn Emit, a: &ValArgs<'_>, symmetric: bool) -> Vals {
    let x = *a.tensor(0)?;
    single(e, x)?;
    let target = dtype(a, 4)?;
    range(target)?;
    let (low, high) = (a.int(1)?, a.int(2)?);
    ensure!(low <= 0 && 0 <= high, "Used-specified quantization range must include 0.");
    ensure!(low < high, "qmin must be strictly less than qmax for user-specified quantization range.");
    let ends = emit_all!(e, "aten.aminmax.default", x)?;
    let (negative, positive) = parts(e, ends[0], ends[1])?;
    let steps = (high - low) as f64;
    let scale = if symmetric {
        let mirrored = emit!(e, "aten.neg.default", negative)?;
        let most = emit!(e, "aten.maximum.default", mirrored, positive)?;
        emit!(e, "aten.div.Tensor", most, steps / 2.0)?
    } else {
        let width = emit!(e, "aten.sub.Tensor", positive, negative)?;
        emit!(e, "aten.div.Tensor", width, steps)?
    };
    let least = emit!(e, "aten.full.default", [1], a.float(3)?, DType::F32)?;
    let scale = emit!(e, "aten.maximum.default", scale, least)?;
    let zero = if symmetric {
        emit!(e, "aten.full.default", [1], if target == DType::U8 { 128 } else { 0 }, DType::I64)?
    } else {
        let steps = emit!(e, "aten.div.Tensor", negative, scale)?;
        let steps = emit!(e, "aten.round.default", steps)?;
        let steps = to(e, steps, DType::I32)?;
        let zero = emit!(e, "aten.rsub.Scalar", steps, low)?;
        emit!(e, "aten.clamp.default", zero, low, high)?
    };
    pair(e, scale, zero)
}
fn choose_affine(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    choose(e, a, false)
}
fn choose_symmetric(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    choose(e, a, true)
}

/// `(input, dtype)`: one scale for each row, zero points of 0. Both are floats, whatever PyTorch's shape function says.
fn choose_tokens(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let target = dtype(a, 1)?;
    ensure!(target == DType::I8, "unsupported dtype in choose_qparams_per_token: {}", name(target));
    let x = emit!(e, "aten.abs.default", *a.tensor(0)?)?;
    let mut scale = emit!(e, "aten.amax.default", x, [-1], true)?;
    if e.meta(scale).dtype == DType::F16 {
        scale = to(e, scale, DType::F32)?;
    }
    let scale = emit!(e, "aten.clamp.default", scale, 1e-5)?;
    let scale = emit!(e, "aten.div.Tensor", scale, 127)?;
    Ok(smallvec![scale, emit!(e, "aten.zeros_like.default", scale)?])
}

/// `(input, dtype)`: scale and zero point for each row, on the grid of `int8`.
fn choose_tokens_affine(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = *a.tensor(0)?;
    let (low, high) = (-128.0, 127.0);
    let min = emit!(e, "aten.amin.default", x, [-1], true)?;
    let max = emit!(e, "aten.amax.default", x, [-1], true)?;
    let (negative, positive) = parts(e, min, max)?;
    let scale = emit!(e, "aten.sub.Tensor", positive, negative)?;
    let scale = emit!(e, "aten.div.Tensor", scale, high - low)?;
    let scale = emit!(e, "aten.clamp.default", scale, f64::from(f32::EPSILON))?;
    let least = emit!(e, "aten.div.Tensor", negative, scale)?;
    let most = emit!(e, "aten.div.Tensor", positive, scale)?;
    let (below, above) = (emit!(e, "aten.add.Tensor", least, low)?, emit!(e, "aten.add.Tensor", most, high)?);
    let both = emit!(e, "aten.add.Tensor", below, above)?;
    let positive = emit!(e, "aten.gt.Scalar", both, 0)?;
    let (from_least, from_most) =
        (emit!(e, "aten.rsub.Scalar", least, low)?, emit!(e, "aten.rsub.Scalar", most, high)?);
    let zero = emit!(e, "aten.where.self", positive, from_least, from_most)?;
    let zero = emit!(e, "aten.clamp.default", zero, low, high)?;
    let zero = emit!(e, "aten.round.default", zero)?;
    pair(e, scale, zero)
}

pub(super) static OPS: &[OpDef] = table![
    quantized!("choose_qparams.tensor", choose_affine, whole_tensors()),
    quantized!("choose_qparams_symmetric.tensor", choose_symmetric, whole_tensors()),
    quantized!("choose_qparams_per_token", choose_tokens, rows()),
    quantized!("choose_qparams_per_token_asymmetric", choose_tokens_affine, rows()),
    quantized!("_choose_qparams_per_token_asymmetric_impl", choose_tokens_affine, rows()),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    const F: DType = DType::F32;

    pub(super) fn whole_tensors() -> Samples {
        let (i8, u8) = (DType::I8, DType::U8);
        vec![
            sample![tensor(F, &[3, 4], 1), -128, 127, 1e-5, i8],
            sample![transposed(F, &[3, 4], 1), 0, 255, 1e-5, u8],
            sample![in_range(F, Layout::contiguous(&[5]), 1, 1.0, 3.0), -127, 127, 0.1, i8],
            sample![tensor(DType::F16, &[3, 4], 1), -128, 127, 1e-5, i8],
            sample![tensor(DType::BF16, &[], 1), 0, 15, 1e-5, u8],
            sample![tensor(DType::F64, &[3], 1), -128, 127, 1e-5, i8],
            sample![tensor(F, &[0], 1), -128, 127, 1e-5, i8],
            sample![tensor(F, &[3], 1), 1, 127, 1e-5, i8],
        ]
    }

    pub(super) fn rows() -> Samples {
        vec![
            sample![tensor(F, &[3, 4], 1), DType::I8],
            sample![transposed(F, &[2, 3, 4], 1), DType::I8],
            sample![tensor(DType::F16, &[3, 4], 1), DType::I8],
            sample![tensor(DType::BF16, &[3, 4], 1), DType::I8],
            sample![tensor(F, &[], 1), DType::I8],
        ]
    }
}
