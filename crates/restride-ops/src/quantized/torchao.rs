//! `torchao`: operators that models quantized by torchao call, with a scale for each block of a tensor.
//!
//! Each is a composition of what torchao runs in Python (`torchao/quantization/quant_primitives.py`), in the same order and with
//! the same promotions.

use super::{dtype, range, stated};
use crate::support::composite::composite;
use crate::support::promote::name;
use crate::support::*;
use restride_ir::{DType, Emit, OpDef, Scalar, Val};
use smallvec::smallvec;

/// A tensor's sizes with each dimension of several blocks as two, and the dimensions within blocks.
fn blocks(e: &mut dyn Emit, x: Val, block: &[i64]) -> Result<(Vec<i64>, Vec<i64>)> {
    let own = sizes(e, x);
    ensure!(own.len() == block.len(), "Got input dim:{}, block_size: {block:?}", own.len());
    let (mut shape, mut within) = (Vec::new(), Vec::new());
    for (i, (&n, &size)) in own.iter().zip(block).enumerate() {
        if size != n && size > 1 {
            ensure!(
                n % size == 0,
                "Expecting input size at {i} dimension: {n} to be divisible by block_size at {i} dimension: {size}"
            );
            shape.push(n / size);
            within.push(shape.len() as i64);
            shape.push(size);
        } else {
            if size != 1 {
                within.push(shape.len() as i64);
            }
            shape.push(n);
        }
    }
    Ok((shape, within))
}

/// `x` in blocks, and scale and zero point beside it. Arguments 1 to 3 are block sizes, scale and zero point.
fn beside(e: &mut dyn Emit, a: &ValArgs<'_>, x: Val) -> Result<(Val, Val, Option<Val>)> {
    let (shape, within) = blocks(e, x, &a.ints(1)?)?;
    let x = emit!(e, "aten.reshape.default", x, shape.clone())?;
    let mut ones = shape;
    within.iter().for_each(|&i| ones[i as usize] = 1);
    let scale = emit!(e, "aten.reshape.default", *a.tensor(2)?, ones.clone())?;
    let zero = match a.opt_tensor(3)? {
        Some(&zero) => Some(emit!(e, "aten.reshape.default", zero, ones)?),
        None => None,
    };
    Ok((x, scale, zero))
}

/// The grid's ends: arguments `at` and `at + 1`, or those of the element type, which they must not leave.
fn ends(a: &ValArgs<'_>, at: usize, dtype: DType) -> Result<(i64, i64)> {
    let (least, most) = range(dtype)?;
    let end = |i: usize, whole: i64| match a.opt_scalar(i)? {
        None => Ok(whole),
        Some(Scalar::Int(n)) => Ok(n),
        Some(other) => fail(format!("restride takes quant_min and quant_max as integers, but got {other:?}")),
    };
    let (low, high) = (end(at, least)?, end(at + 1, most)?);
    ensure!(low >= least, "quant_min out of bound for dtype, quant_min_lower_bound: {least} quant_min: {low}");
    ensure!(high <= most, "quant_max out of bound for dtype, quant_max_upper_bound: {most} quant_max: {high}");
    Ok((low, high))
}

fn is_float(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F16 | DType::BF16)
}

/// `(input, block_size, scale, zero_point, output_dtype, quant_min, quant_max)`
fn quantize(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = *a.tensor(0)?;
    let (own, to_type) = (e.meta(x).dtype, dtype(a, 4)?);
    ensure!(is_float(own), "Unsupported input dtype: {}", name(own));
    let (low, high) = ends(a, 5, to_type)?;
    let shape = sizes(e, x);
    let (x, scale, zero) = beside(e, a, x)?;
    let Some(zero) = zero else { return fail("quantize_affine expects a zero_point") };
    let inverse = emit!(e, "aten.reciprocal.default", scale)?;
    let q = emit!(e, "aten.mul.Tensor", x, inverse)?;
    let q = emit!(e, "aten.round.default", q)?;
    let q = emit!(e, "aten.add.Tensor", q, zero)?;
    let q = emit!(e, "aten.clamp.default", q, low, high)?;
    let q = emit!(e, "aten.reshape.default", q, shape)?;
    Ok(smallvec![to(e, q, to_type)?])
}

/// `(input, block_size, scale, zero_point, input_dtype, quant_min, quant_max, output_dtype)`
fn dequantize(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = *a.tensor(0)?;
    ends(a, 5, stated(e, a, 4)?)?;
    let out = a.opt_dtype(7)?.unwrap_or(DType::F32);
    ensure!(is_float(out), "Unsupported output dtype: {}", name(out));
    let shape = sizes(e, x);
    let (x, scale, zero) = beside(e, a, x)?;
    let mut x = to(e, x, out)?;
    if let Some(zero) = zero {
        let zero = to(e, zero, out)?;
        x = emit!(e, "aten.sub.Tensor", x, zero)?;
    }
    let x = emit!(e, "aten.mul.Tensor", x, scale)?;
    let x = emit!(e, "aten.reshape.default", x, shape)?;
    Ok(smallvec![to(e, x, out)?])
}

/// `(input, mapping_type, block_size, target_dtype, quant_min, quant_max, eps, scale_dtype, zero_point_dtype, keepdim)`
fn choose(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let Some(&x) = a.opt_tensor(0)? else { return fail("choose_qparams_affine expects an input") };
    let (own, block, keep) = (e.meta(x).dtype, a.ints(2)?, a.bool(9)?);
    let (low, high) = ends(a, 4, dtype(a, 3)?)?;
    let smallest = match own {
        DType::F32 | DType::BF16 => f64::from(f32::MIN_POSITIVE),
        DType::F16 => 2f64.powi(-14),
        DType::F64 => f64::MIN_POSITIVE,
        other => return fail(format!("Unsupported input dtype: {}", name(other))),
    };
    let least = a.opt_float(6)?.unwrap_or(smallest);
    let (shape, within) = blocks(e, x, &block)?;
    let outer: Vec<i64> = sizes(e, x).iter().zip(block.iter()).map(|(n, b)| n / b.max(&1)).collect();
    let x = emit!(e, "aten.reshape.default", x, shape)?;
    let min = emit!(e, "aten.amin.default", x, within.clone(), keep)?;
    let max = emit!(e, "aten.amax.default", x, within, keep)?;
    let (negative, positive) = super::qparams::parts(e, min, max)?;
    let (mut scale, zero, asymmetric) = match a.str(1)? {
        "ASYMMETRIC" => {
            let width = emit!(e, "aten.sub.Tensor", positive, negative)?;
            let scale = emit!(e, "aten.div.Tensor", width, (high - low) as f64)?;
            let scale = emit!(e, "aten.clamp.default", scale, least)?;
            let steps = emit!(e, "aten.div.Tensor", negative, scale)?;
            // torchao differentiates the rounding as the identity.
            let rounded = emit!(e, "aten.round.default", steps)?;
            let steps = emit!(e, "restride.with_history.default", rounded, steps)?;
            let zero = emit!(e, "aten.rsub.Scalar", steps, low)?;
            (scale, emit!(e, "aten.clamp.default", zero, low, high)?, true)
        }
        kind @ ("SYMMETRIC" | "SYMMETRIC_NO_CLIPPING_ERR") => {
            let scale = if kind == "SYMMETRIC" {
                let mirrored = emit!(e, "aten.neg.default", negative)?;
                let most = emit!(e, "aten.maximum.default", mirrored, positive)?;
                emit!(e, "aten.div.Tensor", most, (high - low) as f64 / 2.0)?
            } else {
                let below = emit!(e, "aten.div.Tensor", negative, low as f64)?;
                let above = emit!(e, "aten.div.Tensor", positive, high as f64)?;
                let more = emit!(e, "aten.gt.Tensor", below, above)?;
                emit!(e, "aten.where.self", more, below, above)?
            };
            let zero = emit!(e, "aten.full_like.default", scale, (high + low + 1) / 2)?;
            (emit!(e, "aten.clamp.default", scale, least)?, zero, false)
        }
        other => return fail(format!("Unsupported mapping type: {other}")),
    };
    let mut zero = zero;
    if keep {
        scale = emit!(e, "aten.reshape.default", scale, outer.clone())?;
        zero = emit!(e, "aten.reshape.default", zero, outer)?;
    }
    let zero_type = a.opt_dtype(8)?.or(asymmetric.then_some(DType::I32));
    let scale = to(e, scale, a.opt_dtype(7)?.unwrap_or(own))?;
    Ok(smallvec![scale, if let Some(ty) = zero_type { to(e, zero, ty)? } else { zero }])
}

pub(super) static OPS: &[OpDef] = table![
    composite!(
        quantize,
        quantized(),
        "torchao::quantize_affine(Tensor input, SymInt[] block_size, Tensor scale, Tensor? zero_point, ScalarType \
         output_dtype, Scalar? quant_min=None, Scalar? quant_max=None) -> Tensor"
    ),
    composite!(
        dequantize,
        dequantized(),
        "torchao::dequantize_affine(Tensor input, SymInt[] block_size, Tensor scale, Tensor? zero_point, ScalarType \
         input_dtype, Scalar? quant_min=None, Scalar? quant_max=None, ScalarType output_dtype=float) -> Tensor"
    ),
    composite!(
        choose,
        chosen(),
        "torchao::choose_qparams_affine(Tensor? input, str mapping_type, SymInt[] block_size, ScalarType target_dtype, \
         Scalar? quant_min=None, Scalar? quant_max=None, float? eps=None, ScalarType? scale_dtype=None, ScalarType? \
         zero_point_dtype=None, bool keepdim=False) -> (Tensor, Tensor)"
    ),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    const F: DType = DType::F32;

    fn floats(dtype: DType) -> restride_tensor::RawTensor {
        in_range(dtype, Layout::contiguous(&[4, 6]), 1, -9.0, 9.0)
    }
    fn scales(sizes: &[i64]) -> restride_tensor::RawTensor {
        in_range(F, Layout::contiguous(sizes), 2, 0.05, 0.7)
    }

    pub(super) fn quantized() -> Samples {
        let zero = || ints(&[0, 1, -2, 3], &[4]);
        vec![
            sample![floats(F), [1, 6], scales(&[4]), zero(), DType::I8, -8, 7],
            sample![floats(DType::BF16), [1, 6], scales(&[4, 1]), zero(), DType::I8],
            sample![floats(F), [2, 3], scales(&[2, 2]), zero(), DType::I8, -128, 127],
            sample![floats(F), [4, 6], scales(&[]), ints(&[3], &[]), DType::U8],
            sample![floats(F), [1, 4], scales(&[4]), zero(), DType::I8],
            sample![floats(F), [6], scales(&[4]), zero(), DType::I8],
            sample![floats(F), [1, 6], scales(&[4]), (), DType::I8],
            sample![floats(F), [1, 6], scales(&[4]), zero(), DType::I8, -129, 127],
        ]
    }

    pub(super) fn dequantized() -> Samples {
        let x = || in_range(DType::I8, Layout::contiguous(&[4, 6]), 1, -120.0, 120.0);
        let zero = || ints(&[0, 1, -2, 3], &[4]);
        vec![
            sample![x(), [1, 6], scales(&[4]), zero(), DType::I8, -8, 7],
            sample![x(), [2, 3], scales(&[2, 2]), (), DType::I8, (), (), DType::BF16],
            sample![x(), [1, 6], scales(&[4, 1]), zero(), DType::U8],
        ]
    }

    pub(super) fn chosen() -> Samples {
        let i8 = DType::I8;
        vec![
            sample![floats(F), "ASYMMETRIC", [1, 6], i8, -128, 127, (), (), i8],
            sample![floats(F), "ASYMMETRIC", [2, 3], DType::U8],
            sample![floats(F), "SYMMETRIC", [1, 6], i8, -127, 127, 1e-5, F, i8, true],
            sample![floats(DType::BF16), "SYMMETRIC", [1, 3], i8, (), (), 1e-5, F, DType::I32],
            sample![floats(F), "SYMMETRIC_NO_CLIPPING_ERR", [1, 2], i8, -8, 7],
            sample![floats(F), "OTHER", [1, 6], i8],
        ]
    }
}
