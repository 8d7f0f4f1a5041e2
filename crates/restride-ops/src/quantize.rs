//! Numbers rounded to the grid of a quantized type whose scale and zero are tensors: of the whole, or of each channel.

use crate::composite::composite;
use crate::nn::*;
use crate::promote::name;
use crate::sample::{in_range, ints, sample, tensor, transposed};
use restride_ir::{DType, Emit, OpDef, Val};
use restride_tensor::Layout;
use smallvec::smallvec;

/// Results and which numbers lie within the range. Scale and zero broadcast to the operand.
fn rounded(e: &mut dyn Emit, x: Val, scale: Val, zero: Val, (low, high): (i64, i64)) -> Result<(Val, Val)> {
    let own = e.meta(x).dtype;
    ensure!(own.is_float(), "\"fake_quantize\" not implemented for '{}'", name(own));
    ensure!(low <= high, "`quant_min` should be less than or equal to `quant_max`.");
    let wide = e.meta(scale).dtype;
    let zero = emit!(e, "aten.to.dtype", zero, wide)?;
    let inverse = emit!(e, "aten.reciprocal.default", scale)?;
    let q = emit!(e, "aten.mul.Tensor", x, inverse)?;
    let q = emit!(e, "aten.round.default", q)?;
    let q = emit!(e, "aten.add.Tensor", q, zero)?;
    let (above, below) = (emit!(e, "aten.ge.Scalar", q, low)?, emit!(e, "aten.le.Scalar", q, high)?);
    let mask = emit!(e, "aten.logical_and.default", above, below)?;
    // What is no number becomes the least one.
    let q = emit!(e, "aten.nan_to_num.default", q, low as f64, high as f64, low as f64)?;
    let q = emit!(e, "aten.clamp.default", q, low, high)?;
    let q = emit!(e, "aten.sub.Tensor", q, zero)?;
    let q = emit!(e, "aten.mul.Tensor", q, scale)?;
    Ok((if e.meta(q).dtype == own { q } else { emit!(e, "aten.to.dtype", q, own)? }, mask))
}

/// `(self, scale, zero_point, axis, quant_min, quant_max)`
fn by_channel(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, scale, zero) = (*a.tensor(0)?, *a.tensor(1)?, *a.tensor(2)?);
    let (mx, ms, mz) = (e.meta(x), e.meta(scale), e.meta(zero));
    let axis = a.int(3)?;
    ensure!(axis >= 0 && axis < mx.rank() as i64, "`axis` must be between 0 and number of dimensions of input");
    let n = mx.sizes()[axis as usize];
    ensure!(ms.dtype == DType::F32, "Scale must be Float, found {}", name(ms.dtype));
    ensure!(
        matches!(mz.dtype, DType::I32 | DType::F32 | DType::F16),
        "Zero-point must be Int32, Float or Half, found {}",
        name(mz.dtype)
    );
    ensure!(
        ms.sizes() == [n] && mz.sizes() == [n],
        "dimensions of scale and zero-point are not consistent with input tensor"
    );
    let mut shape = vec![1; mx.rank()];
    shape[axis as usize] = n;
    let scale = emit!(e, "aten.view.default", scale, shape.clone())?;
    let zero = emit!(e, "aten.view.default", zero, shape)?;
    let (out, mask) = rounded(e, x, scale, zero, (a.int(4)?, a.int(5)?))?;
    Ok(smallvec![out, mask])
}
fn by_channel_alone(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let op = "aten.fake_quantize_per_channel_affine_cachemask.default";
    Ok(smallvec![emit!(e, op, pass(a, 0), pass(a, 1), pass(a, 2), pass(a, 3), pass(a, 4), pass(a, 5))?])
}

/// `(self, scale, zero_point, fake_quant_enabled, quant_min, quant_max)`
fn by_tensors(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, on) = (*a.tensor(0)?, *a.tensor(3)?);
    let none: &[i64] = &[];
    let scale = emit!(e, "aten.reshape.default", *a.tensor(1)?, none)?;
    let zero = emit!(e, "aten.reshape.default", *a.tensor(2)?, none)?;
    let (out, mask) = rounded(e, x, scale, zero, (a.int(4)?, a.int(5)?))?;
    let on = emit!(e, "aten.reshape.default", on, none)?;
    let on = emit!(e, "aten.ne.Scalar", on, 0)?;
    let off = emit!(e, "aten.logical_not.default", on)?;
    Ok(smallvec![emit!(e, "aten.where.self", on, out, x)?, emit!(e, "aten.logical_or.default", mask, off)?])
}
fn by_tensors_alone(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let on = emit!(e, "aten.full.default", [1], 1, DType::I64)?;
    let op = "aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default";
    Ok(smallvec![emit!(e, op, pass(a, 0), pass(a, 1), pass(a, 2), on, pass(a, 3), pass(a, 4))?])
}

const F: DType = DType::F32;

fn scales(n: i64) -> restride_tensor::Tensor {
    in_range(F, Layout::contiguous(&[n]), 3, 0.05, 0.3)
}
fn zeros(n: i64) -> restride_tensor::Tensor {
    let data: Vec<i32> = (0..n as i32).map(|i| i % 3 - 1).collect();
    restride_tensor::Tensor::from_slice(&data, &[n])
}
fn channels() -> Samples {
    vec![
        sample![tensor(F, &[3, 4], 1), scales(4), zeros(4), 1, -8, 7],
        sample![transposed(F, &[3, 4, 2], 1), scales(3), zeros(3), 0, -128, 127],
        sample![tensor(DType::F64, &[3], 1), scales(3), zeros(3), 0, 0, 15],
        sample![tensor(F, &[3, 4], 1), scales(3), zeros(3), 1, -8, 7],
    ]
}
fn by_tensor_samples(enabled: bool) -> Samples {
    let mut out = vec![
        sample![tensor(F, &[3, 4], 1), scales(1), zeros(1), -8, 7],
        sample![transposed(F, &[3, 4], 1), scales(1), zeros(1), -128, 127],
    ];
    if enabled {
        for (s, on) in out.iter_mut().zip([1, 0]) {
            s.args.insert(3, crate::sample::IntoArg::arg(ints(&[on], &[1])));
        }
    }
    out
}

pub(crate) static OPS: &[OpDef] = &[
    composite!(
        by_channel,
        channels(),
        "aten::fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max) -> (Tensor output, Tensor mask)"
    ),
    composite!(
        by_channel_alone,
        channels(),
        "aten::fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max) -> Tensor"
    ),
    composite!(
        by_tensors,
        by_tensor_samples(true),
        "aten::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, Tensor fake_quant_enabled, int quant_min, int quant_max) -> (Tensor output, Tensor mask)"
    ),
    composite!(
        by_tensors_alone,
        by_tensor_samples(false),
        "aten::fake_quantize_per_tensor_affine.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, int quant_min, int quant_max) -> Tensor"
    ),
];
