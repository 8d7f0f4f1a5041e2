//! Fake quantization with tensors as scale and zero point, per tensor or per channel.

use crate::support::composite::composite;
use crate::support::promote::name;
use crate::support::*;
use restride_ir::{DType, Emit, OpDef, Val};
use smallvec::smallvec;

/// The rounded numbers and the mask of those within range. Scale and zero point broadcast to the operand.
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
    // NaN becomes the smallest number.
    let q = emit!(e, "aten.nan_to_num.default", q, low as f64, high as f64, low as f64)?;
    let q = emit!(e, "aten.clamp.default", q, low, high)?;
    let q = emit!(e, "aten.sub.Tensor", q, zero)?;
    let q = emit!(e, "aten.mul.Tensor", q, scale)?;
    Ok((to(e, q, own)?, mask))
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
    let (low, high) = (a.int(4)?, a.int(5)?);
    if mz.dtype == DType::I32 {
        let (above, below) = (emit!(e, "aten.ge.Scalar", zero, low)?, emit!(e, "aten.le.Scalar", zero, high)?);
        let within = emit!(e, "aten.logical_and.default", above, below)?;
        require(e, within, "`zero_point` must be between `quant_min` and `quant_max`.")?;
    }
    let mut shape = vec![1; mx.rank()];
    shape[axis as usize] = n;
    let scale = emit!(e, "aten.view.default", scale, shape.clone())?;
    let zero = emit!(e, "aten.view.default", zero, shape)?;
    let (out, mask) = rounded(e, x, scale, zero, (low, high))?;
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

/// Scale and zero point of a learnable grid, as tensors that broadcast to the operand. The zero point becomes an integer
/// within range.
///
/// PyTorch rounds half-way zero points to even, but the backward operator per tensor rounds them up.
fn learnt(e: &mut dyn Emit, a: &ValArgs<'_>, at: usize, axis: Option<i64>, back: bool) -> Result<(Val, Val)> {
    let (x, scale, zero) = (*a.tensor(at)?, *a.tensor(at + 1)?, *a.tensor(at + 2)?);
    let bounds = at + 3 + usize::from(axis.is_some());
    let (low, high) = (a.int(bounds)?, a.int(bounds + 1)?);
    ensure!(
        low <= 0 && high >= 0,
        "`quant_min` should be less than or equal to `quant_max`, and the range should include 0."
    );
    let mx = e.meta(x);
    let mut shape = Vec::new();
    match axis {
        Some(axis) => {
            ensure!(axis >= 0 && axis < mx.rank() as i64, "`axis` must be between 0 and number of dimensions of input");
            let n = mx.sizes()[axis as usize];
            ensure!(
                sizes(e, scale) == [n] && sizes(e, zero) == [n],
                "dimensions of scale and zero-point are not consistent with input tensor"
            );
            shape = vec![1; mx.rank()];
            shape[axis as usize] = n;
        }
        None => ensure!(
            e.meta(scale).layout.numel() == 1 && e.meta(zero).layout.numel() == 1,
            "scale and zero-point need to be tensors of one element"
        ),
    }
    let scale = emit!(e, "aten.reshape.default", scale, shape.clone())?;
    let zero = emit!(e, "aten.reshape.default", zero, shape)?;
    let zero = if axis.is_none() && back {
        let moved = emit!(e, "aten.add.Tensor", zero, 0.5)?;
        let moved = emit!(e, "aten.clamp.default", moved, low, high)?;
        emit!(e, "aten.trunc.default", moved)?
    } else {
        let whole = emit!(e, "aten.round.default", zero)?;
        emit!(e, "aten.clamp.default", whole, low, high)?
    };
    Ok((scale, zero))
}

/// `(self, scale, zero_point, [axis,] quant_min, quant_max, grad_factor)`
fn learnable(e: &mut dyn Emit, a: &ValArgs<'_>, axis: Option<i64>) -> Vals {
    let (scale, zero) = learnt(e, a, 0, axis, false)?;
    let bounds = 3 + usize::from(axis.is_some());
    let (out, _) = rounded(e, *a.tensor(0)?, scale, zero, (a.int(bounds)?, a.int(bounds + 1)?))?;
    Ok(smallvec![out])
}
fn learnable_tensor(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    learnable(e, a, None)
}
fn learnable_channel(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let scale = e.meta(*a.tensor(1)?).dtype;
    ensure!(matches!(scale, DType::F32 | DType::BF16), "Scale must be Float or BFloat16, found {}", name(scale));
    learnable(e, a, Some(a.int(3)?))
}

/// `(grad, self, scale, zero_point, [axis,] quant_min, quant_max, grad_factor)`: gradients of operand, scale, zero point.
fn learnable_back(e: &mut dyn Emit, a: &ValArgs<'_>, axis: Option<i64>) -> Vals {
    let (g, x) = (*a.tensor(0)?, *a.tensor(1)?);
    for i in 0..4 {
        let dtype = e.meta(*a.tensor(i)?).dtype;
        ensure!(dtype == DType::F32, "the gradient of a learnable grid is of Float only, got {}", name(dtype));
    }
    let bounds = 4 + usize::from(axis.is_some());
    let (low, high, factor) = (a.int(bounds)?, a.int(bounds + 1)?, a.float(bounds + 2)?);
    let (scale, zero) = learnt(e, a, 1, axis, true)?;
    let inverse = emit!(e, "aten.reciprocal.default", scale)?;
    let q = emit!(e, "aten.mul.Tensor", x, inverse)?;
    let q = emit!(e, "aten.round.default", q)?;
    let q = emit!(e, "aten.add.Tensor", q, zero)?;
    let (small, big) = (emit!(e, "aten.lt.Scalar", q, low)?, emit!(e, "aten.gt.Scalar", q, high)?);
    let outside = emit!(e, "aten.logical_or.default", small, big)?;
    // In the strides of the operand, not of the gradient.
    let for_x = emit!(e, "aten.where.ScalarSelf", outside, 0.0, g)?;
    // The scale's gradient is the rounding error within range, and the bound's distance from the zero point outside.
    let clamped = emit!(e, "aten.clamp.default", q, low, high)?;
    let steps = emit!(e, "aten.sub.Tensor", clamped, zero)?;
    let value = emit!(e, "aten.mul.Tensor", steps, scale)?;
    let error = emit!(e, "aten.sub.Tensor", value, x)?;
    let error = emit!(e, "aten.mul.Tensor", error, inverse)?;
    let slope = emit!(e, "aten.where.self", outside, steps, error)?;
    let for_scale = emit!(e, "aten.mul.Tensor", g, slope)?;
    let for_zero = emit!(e, "aten.mul.Tensor", g, scale)?;
    let for_zero = emit!(e, "aten.neg.default", for_zero)?;
    let inside = emit!(e, "aten.logical_not.default", outside)?;
    let for_zero = emit!(e, "aten.masked_fill.Scalar", for_zero, inside, 0)?;
    let rank = e.meta(x).rank() as i64;
    let mut out = smallvec![for_x];
    for (v, like) in [(for_scale, *a.tensor(2)?), (for_zero, *a.tensor(3)?)] {
        let v = emit!(e, "aten.mul.Tensor", v, factor)?;
        let sum = match axis {
            Some(axis) if rank > 1 => {
                emit!(e, "aten.sum.dim_IntList", v, (0..rank).filter(|d| *d != axis).collect::<Vec<_>>())?
            }
            Some(_) => v,
            None => {
                let sum = emit!(e, "aten.sum.default", v)?;
                emit!(e, "aten.unsqueeze.default", sum, 0)?
            }
        };
        let dtype = e.meta(like).dtype;
        out.push(to(e, sum, dtype)?);
    }
    Ok(out)
}
fn learnable_tensor_back(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    learnable_back(e, a, None)
}
fn learnable_channel_back(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    learnable_back(e, a, Some(a.int(4)?))
}

pub(crate) static OPS: &[OpDef] = table![
    composite!(learnable_tensor, learnable_samples(false, false), "_fake_quantize_learnable_per_tensor_affine"),
    composite!(learnable_channel, learnable_samples(true, false), "_fake_quantize_learnable_per_channel_affine"),
    composite!(
        learnable_tensor_back,
        learnable_samples(false, true),
        "_fake_quantize_learnable_per_tensor_affine_backward"
    ),
    composite!(
        learnable_channel_back,
        learnable_samples(true, true),
        "_fake_quantize_learnable_per_channel_affine_backward"
    ),
    composite!(by_channel, channels(), "fake_quantize_per_channel_affine_cachemask").failing(),
    composite!(by_channel_alone, channels(), "fake_quantize_per_channel_affine").failing(),
    composite!(by_tensors, by_tensor_samples(true), "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams"),
    composite!(by_tensors_alone, by_tensor_samples(false), "fake_quantize_per_tensor_affine.tensor_qparams"),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    pub(crate) const F: DType = DType::F32;

    pub(crate) fn scales(n: i64) -> restride_tensor::RawTensor {
        in_range(F, Layout::contiguous(&[n]), 3, 0.05, 0.3)
    }

    pub(crate) fn zeros(n: i64) -> restride_tensor::RawTensor {
        let data: Vec<i32> = (0..n as i32).map(|i| i % 3 - 1).collect();
        restride_tensor::RawTensor::from_slice(&data, &[n])
    }

    pub(crate) fn channels() -> Samples {
        vec![
            sample![tensor(F, &[3, 4], 1), scales(4), zeros(4), 1, -8, 7],
            sample![transposed(F, &[3, 4, 2], 1), scales(3), zeros(3), 0, -128, 127],
            sample![tensor(DType::F64, &[3], 1), scales(3), zeros(3), 0, 0, 15],
            sample![tensor(F, &[3, 4], 1), scales(3), zeros(3), 1, -8, 7],
            sample![
                tensor(F, &[3, 2], 1),
                scales(2),
                restride_tensor::RawTensor::from_slice(&[2i32, 8], &[2]),
                1,
                -8,
                7
            ],
            sample![
                tensor(F, &[3, 2], 1),
                scales(2),
                restride_tensor::RawTensor::from_slice(&[2.0f32, 8.0], &[2]),
                1,
                -8,
                7
            ],
        ]
    }

    pub(crate) fn by_tensor_samples(enabled: bool) -> Samples {
        let mut out = vec![
            sample![tensor(F, &[3, 4], 1), scales(1), zeros(1), -8, 7],
            sample![transposed(F, &[3, 4], 1), scales(1), zeros(1), -128, 127],
        ];
        if enabled {
            for (s, on) in out.iter_mut().zip([1, 0]) {
                s.args.insert(3, crate::support::samples::IntoArg::arg(ints(&[on], &[1])));
            }
        }
        out
    }

    /// Sample calls with fractional zero points; `back` selects the backward operator.
    pub(crate) fn learnable_samples(channels: bool, back: bool) -> Samples {
        let d = F;
        let grid = |n: i64| {
            let zero = in_range(d, Layout::contiguous(&[n]), 5, -1.8, 1.8);
            (in_range(d, Layout::contiguous(&[n]), 3, 0.05, 0.3), zero)
        };
        let (x, y) = (tensor(d, &[3, 4], 1), transposed(d, &[3, 4, 2], 2));
        let ((s1, z1), (s3, z3), (s4, z4)) = (grid(1), grid(3), grid(4));
        let mut out = match channels {
            true => vec![sample![&x, s4, z4, 1, -8, 7, 0.5], sample![&y, s3, z3, 0, -2, 3, 1.0]],
            false => vec![sample![&x, &s1, &z1, -8, 7, 1.0], sample![&y, s1, z1, -2, 3, 0.25]],
        };
        if back {
            for (s, g) in out.iter_mut().zip([tensor(d, &[3, 4], 8), tensor(d, &[3, 4, 2], 9)]) {
                s.args.insert(0, crate::support::samples::IntoArg::arg(g));
            }
        }
        out
    }
}
