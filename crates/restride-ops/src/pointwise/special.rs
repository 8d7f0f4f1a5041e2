//! Derivatives with several results, drawn activations, windows, and other compositions of pointwise operators.

use crate::pointwise::activation::gated;
use crate::pointwise::{Metas, Promotion, Result, compute, infer, input, layout, not_for, op, operands, own, run};
use crate::support::composite::composite;
use crate::support::promote::name;
use crate::support::strides::dense_like;
use crate::support::{ValArgs, Vals, emit, ensure, pass};
use restride_ir::{Args, Call, Emit, Exactness, Meta, OpDef, OpError, Scalar, TwinDecl, TwinReturn, Val};
use restride_kernels::pointwise::{self as k, Input};
use restride_tensor::DType::*;
use smallvec::smallvec;

/// Refuses operands of different element types.
fn same_types(a: &Args<'_, Meta>, at: &[usize]) -> Result<()> {
    let first = a.tensor(at[0])?.dtype;
    for &i in at {
        let other = a.tensor(i)?.dtype;
        ensure!(other == first, "Found dtype {} but expected {}", name(other), name(first));
    }
    Ok(())
}

/// Operands: the gradient, the operand, and a buffer that the derivative does not need.
fn infer_log_sigmoid_backward(a: &Args<'_, Meta>) -> Metas {
    same_types(a, &[0, 1])?;
    let out = infer(a, &[0, 1], &[], Promotion::Same, &k::LOG_SIGMOID_BACKWARD)?;
    let g = a.tensor(0)?;
    ensure!(out[0].sizes() == g.sizes(), "log_sigmoid_backward: the gradient is smaller than the operand");
    Ok(smallvec![Meta::new(out[0].dtype, dense_like(&g.layout))])
}
fn run_log_sigmoid_backward(c: &Call<'_>) -> Result<()> {
    run(c, &[0, 1], &[], Promotion::Same, &k::LOG_SIGMOID_BACKWARD)
}

/// Types of the gradients of the operand and of the weight, the latter not yet summed.
fn infer_prelu_backward(a: &Args<'_, Meta>) -> Metas {
    same_types(a, &[0, 1, 2])?;
    let out = infer(a, &[1, 2, 0], &[], Promotion::NoBool, &k::PRELU_BACKWARD)?;
    Ok(smallvec![out[0].clone(), out[0].clone()])
}
fn run_prelu_backward(c: &Call<'_>) -> Result<()> {
    let (g, x, w) = (input(&c.args, 0)?, input(&c.args, 1)?, input(&c.args, 2)?);
    let dtype = c.outs[0].dtype();
    k::compute(&k::PRELU_WEIGHT_BACKWARD, dtype, &[g, x], &c.outs[1], c.ctx.threads)
        .map_err(|e| OpError::new(e.to_string()))?;
    compute(c, &k::PRELU_BACKWARD, dtype, &[g, x, w])
}

/// A gradient multiplied by a mask.
fn infer_masked(a: &Args<'_, Meta>) -> Metas {
    let (g, mask) = (a.tensor(0)?, a.tensor(1)?);
    ensure!(mask.dtype == Bool, "Mask should be Bool Scalar Type, got {}", name(mask.dtype));
    if !g.dtype.is_float() {
        return not_for(g.dtype);
    }
    Ok(smallvec![Meta::new(g.dtype, layout(&operands(a, &[0, 1])?, g.dtype)?)])
}
fn run_masked(c: &Call<'_>) -> Result<()> {
    let scale = c.args.opt_scalar(2)?.unwrap_or(Scalar::Int(1));
    let inputs = [input(&c.args, 0)?, input(&c.args, 1)?.as_mask(), Input::Parameter(scale)];
    compute(c, &k::MASKED_SCALED, c.outs[0].dtype(), &inputs)
}

/// A gradient multiplied by a mask and a scale.
fn dropout_backward(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let kept = emit!(e, "aten.mul.Tensor", *a.tensor(0)?, *a.tensor(1)?)?;
    Ok(smallvec![emit!(e, "aten.mul.Scalar", kept, a.float(2)?)?])
}

/// `glu`'s derivative: `g * s` for the first half and `g * a * s * (1 - s)` for the second.
fn glu_backward(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (g, x) = (*a.tensor(0)?, *a.tensor(1)?);
    let (first, gate, d) = gated(e, x, a.int(2)?)?;
    let for_first = emit!(e, "aten.mul.Tensor", g, gate)?;
    let for_gate = emit!(e, "aten.mul.Tensor", g, first)?;
    let for_second = emit!(e, "aten.sigmoid_backward.default", for_gate, gate)?;
    let both = emit!(e, "aten.cat.default", vec![for_first, for_second], d)?;
    // PyTorch's result is row-major for any operand strides.
    Ok(smallvec![emit!(e, "aten.contiguous.default", both)?])
}

/// `glu_jvp(glu, x, dx, dim)`: the tangent of `glu` in the direction of `dx`.
fn glu_jvp(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (_, gate, d) = gated(e, *a.tensor(1)?, a.int(3)?)?;
    let dx = *a.tensor(2)?;
    let size = e.meta(dx).sizes()[d as usize];
    let first = emit!(e, "aten.slice.Tensor", dx, d, 0, size / 2, 1)?;
    let second = emit!(e, "aten.slice.Tensor", dx, d, size / 2, size, 1)?;
    let own = emit!(e, "aten.mul.Tensor", first, gate)?;
    let gated = emit!(e, "aten.mul.Tensor", gate, second)?;
    let rest = emit!(e, "aten.sub.Tensor", second, gated)?;
    let rest = emit!(e, "aten.mul.Tensor", *a.tensor(0)?, rest)?;
    Ok(smallvec![emit!(e, "aten.add.Tensor", own, rest)?])
}

/// Multiplies negative numbers by a slope: drawn for each in training, else the middle of the range. Also returns the slopes.
fn sloped(e: &mut dyn Emit, x: Val, noise: Option<Val>, bounds: (f64, f64), train: bool) -> Result<(Val, Option<Val>)> {
    let (low, high) = bounds;
    if low > high {
        return Err(OpError::new(format!(
            "Lower bound should be less than or equal to the upper bound, got [{low}, {high}]"
        )));
    }
    if !train {
        let out = emit!(e, "aten.leaky_relu.default", x, (low + high) / 2.0)?;
        let noise = noise.map(|n| emit!(e, "aten.clone.default", n)).transpose()?;
        return Ok((emit!(e, "aten.contiguous.default", out)?, noise));
    }
    let x = emit!(e, "aten.contiguous.default", x)?;
    let drawn = emit!(e, "aten.uniform.default", x, low, high)?;
    let below = emit!(e, "aten.le.Scalar", x, 0)?;
    let slope = emit!(e, "aten.where.ScalarOther", below, drawn, 1)?;
    Ok((emit!(e, "aten.mul.Tensor", x, slope)?, Some(slope)))
}
fn rrelu(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let train = a.opt_bool(3)?.unwrap_or(false);
    Ok(smallvec![sloped(e, *a.tensor(0)?, None, (a.float(1)?, a.float(2)?), train)?.0])
}
/// `rrelu_with_noise_functional(self, noise, lower, upper, training)`
fn rrelu_with_noise(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, noise) = (*a.tensor(0)?, *a.tensor(1)?);
    let train = a.opt_bool(4)?.unwrap_or(false);
    let (out, slope) = sloped(e, x, Some(noise), (a.float(2)?, a.float(3)?), train)?;
    Ok(smallvec![out, slope.unwrap_or(noise)])
}

/// `(grad_output, self, noise, lower, upper, training, self_is_result)`; `noise` holds the slopes.
fn rrelu_with_noise_backward(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (low, high) = (a.float(3)?, a.float(4)?);
    // An empty range has one slope only.
    let g = if a.bool(5)? && high - low > 1e-6 {
        emit!(e, "aten.mul.Tensor", pass(a, 0), pass(a, 2))?
    } else {
        emit!(e, "aten.leaky_relu_backward.default", pass(a, 0), pass(a, 1), (low + high) / 2.0, pass(a, 6))?
    };
    Ok(smallvec![g])
}

/// Marks an operator whose calls draw different numbers each time.
const fn drawn(def: OpDef) -> OpDef {
    OpDef { random: true, exactness: Exactness::Random, ..def }
}

/// True for every real number, and for complex numbers with imaginary part zero.
fn isreal(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = *a.tensor(0)?;
    let out = if e.meta(x).dtype.is_complex() {
        let imag = emit!(e, "aten.imag.default", x)?;
        emit!(e, "aten.eq.Scalar", imag, 0)?
    } else {
        emit!(e, "aten.ones_like.default", x, Bool)?
    };
    Ok(smallvec![out])
}

/// Expands each tensor to the sizes that all broadcast to.
fn broadcast_tensors(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let tensors: Vec<Val> = a.tensors(0)?.into_iter().copied().collect();
    let metas: Vec<Meta> = tensors.iter().map(|t| e.meta(*t)).collect();
    let sizes = crate::support::strides::broadcast_sizes(&metas.iter().map(Meta::sizes).collect::<Vec<_>>())?;
    tensors.iter().map(|t| emit!(e, "aten.expand.default", *t, &sizes[..])).collect()
}

pub(crate) static OPS: &[OpDef] = table![
    op!("bitwise_left_shift.Scalar_Tensor", NoBool(0, 1), k::SHIFT_LEFT, shifts_of_numbers),
    op!("bitwise_right_shift.Scalar_Tensor", NoBool(0, 1), k::SHIFT_RIGHT, shifts_of_numbers),
    op!("special_xlog1py.other_scalar", Float(0, 1), k::XLOG1PY, || { with_number(NO_BOOL) }),
    op!("special_xlog1py.self_scalar", Float(0, 1), k::XLOG1PY, || { number_first(REAL) }),
    op!("special_entr", Float(0), k::ENTROPY, || special(ALL_REAL)),
    op!("special_ndtr", Float(0), k::NORMAL_CDF, || unary(ALL_REAL, -3.0, 3.0)),
    op!("i0", Float(0), k::BESSEL_I0, || unary(ALL_REAL, -9.0, 9.0)),
    op!("special_i0e", Float(0), k::BESSEL_I0E, || unary(ALL_REAL, -70.0, 70.0)),
    op!("special_i1", Float(0), k::BESSEL_I1, || unary(ALL_REAL, -9.0, 9.0)),
    op!("special_i1e", Float(0), k::BESSEL_I1E, || unary(ALL_REAL, -70.0, 70.0)),
    own!("log_sigmoid_backward", infer_log_sigmoid_backward, run_log_sigmoid_backward, (0, 1), gradients_with_buffer),
    own!("_prelu_kernel_backward", infer_prelu_backward, run_prelu_backward, (), prelu_gradients),
    composite!(dropout_backward, dropout_gradients(), "native_dropout_backward"),
    own!("fake_quantize_per_tensor_affine_cachemask_backward", infer_masked, run_masked, (0), || masked(None)),
    own!("fake_quantize_per_channel_affine_cachemask_backward", infer_masked, run_masked, (0), || masked(None)),
    composite!(glu_backward, glu_gradients(), "glu_backward"),
    composite!(glu_jvp, glu_tangents(), "glu_jvp"),
    drawn(composite!(rrelu, unary(REAL, -2.0, 2.0), "rrelu")),
    OpDef {
        twin: Some(TwinDecl {
            op: "aten.rrelu_with_noise_functional.default",
            args: &[0, 1, 2, 3, 4, 5],
            writes: &[(0, 0), (1, 1)],
            returns: &[TwinReturn::Arg(0)],
            when: None,
        }),
        ..OpDef::new("rrelu_with_noise_")
    },
    composite!(rrelu_with_noise_backward, s_rrelu_with_noise_backward(), "rrelu_with_noise_backward"),
    drawn(composite!(rrelu_with_noise, s_rrelu_with_noise_functional(), "rrelu_with_noise_functional")),
    composite!(isreal, reals(), "isreal").exactly(),
    composite!(broadcast_tensors, broadcasts(), "broadcast_tensors").exactly(),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    use super::*;
    pub(super) use crate::pointwise::samples::*;

    /// Sample calls that shift a plain number.
    pub(crate) fn shifts_of_numbers() -> Vec<Sample> {
        let by = crate::support::samples::ints(&[0, 1, 3, 7], &[4]);
        vec![sample![5, &by], sample![-300, &by], sample![true, by]]
    }

    pub(crate) fn gradients_with_buffer() -> Vec<Sample> {
        let triple = |g: restride_tensor::RawTensor, x: restride_tensor::RawTensor| {
            let buffer = tensor(x.dtype(), &[0], 9);
            sample![g, x, buffer]
        };
        let mut out = Vec::new();
        for d in [F32, F64, BF16, F16] {
            out.push(triple(tensor(d, &[2, 3], 1), tensor(d, &[2, 3], 2)));
            out.push(triple(transposed(d, &[2, 3, 4], 1), tensor(d, &[2, 3, 4], 2)));
            out.push(triple(tensor(d, &[2, 3, 4], 1), transposed(d, &[2, 3, 4], 2)));
        }
        // PyTorch's forward operator fills the buffer with `exp(-|x|)`.
        for s in &mut out {
            if let Arg::Value(x) = &s.args[1] {
                let z = restride_tensor::RawTensor::zeros(x.dtype(), Layout::contiguous(&x.layout().sizes));
                k::compute(
                    &k::LOG_SIGMOID_BUFFER,
                    x.dtype(),
                    &[Input::View(x.read().view())],
                    &z.write().view_mut(),
                    1,
                )
                .expect("it is defined for floats");
                s.args[2] = Arg::Value(z);
            }
        }
        out
    }

    pub(crate) fn prelu_gradients() -> Vec<Sample> {
        vec![
            sample![tensor(F32, &[2, 3, 4], 1), tensor(F32, &[2, 3, 4], 2), tensor(F32, &[1, 3, 1], 3)],
            sample![tensor(F32, &[2, 3, 4], 1), transposed(F32, &[2, 3, 4], 2), tensor(F32, &[1, 1, 1], 3)],
            sample![transposed(F64, &[2, 3, 4], 1), tensor(F64, &[2, 3, 4], 2), tensor(F64, &[1, 3, 1], 3)],
            sample![tensor(BF16, &[0, 3], 1), tensor(BF16, &[0, 3], 2), tensor(BF16, &[1, 3], 3)],
        ]
    }

    pub(crate) fn dropout_gradients() -> Vec<Sample> {
        let mut out = masked(Some(2.0));
        for d in [Bool, I64, C64] {
            out.push(sample![tensor(d, &[2, 3], 1), tensor(Bool, &[2, 3], 2), 2.0]);
        }
        out
    }

    pub(crate) fn masked(scale: Option<f64>) -> Vec<Sample> {
        let mut out = Vec::new();
        for d in [F32, F64, F16, BF16] {
            out.push(sample![tensor(d, &[2, 3], 1), tensor(Bool, &[2, 3], 2)]);
            out.push(sample![tensor(d, &[2, 3, 4], 1), transposed(Bool, &[2, 3, 4], 2)]);
            out.push(sample![transposed(d, &[2, 3, 4], 1), tensor(Bool, &[2, 3, 4], 2)]);
        }
        for s in &mut out {
            s.args.extend(scale.map(|x| Arg::Scalar(Scalar::Float(x))));
        }
        out
    }

    pub(crate) fn glu_tangents() -> Vec<Sample> {
        let mut out = Vec::new();
        for d in [DType::F32, DType::F64] {
            for (half, sizes, dim) in [(&[2, 3][..], &[4, 3][..], 0), (&[4, 1], &[4, 2], -1)] {
                let own = tensor(d, half, 1);
                out.extend(forms(d, sizes, 2).into_iter().map(|x| sample![&own, x, tensor(d, sizes, 3), dim]));
            }
        }
        out
    }

    pub(crate) fn glu_gradients() -> Vec<Sample> {
        vec![
            sample![tensor(F32, &[2, 3], 1), tensor(F32, &[2, 6], 2), -1],
            sample![tensor(F32, &[2, 3, 2], 1), transposed(F32, &[4, 3, 2], 2), 0],
            sample![transposed(F64, &[2, 3, 2], 1), tensor(F64, &[2, 3, 4], 2), 2],
            sample![tensor(F32, &[0, 2], 1), tensor(F32, &[0, 4], 2), 1],
            sample![tensor(F32, &[2, 1], 1), tensor(F32, &[2, 3], 2), 1],
        ]
    }

    pub(crate) fn broadcasts() -> Vec<Sample> {
        vec![
            sample![vec![tensor(F32, &[2, 3], 1), tensor(I64, &[3], 2), tensor(F32, &[], 3)]],
            sample![vec![transposed(F32, &[2, 3, 4], 1), tensor(F32, &[3, 1], 2)]],
            sample![vec![tensor(F32, &[2], 1)]],
            sample![vec![tensor(F32, &[2, 3], 1), tensor(F32, &[2], 2)]],
        ]
    }

    pub(crate) fn reals() -> Vec<Sample> {
        let mut out = unary(ALL, -2.0, 2.0);
        let z = restride_tensor::C64::new;
        out.push(sample![restride_tensor::RawTensor::from_slice(&[z(1.0, 0.0), z(1.0, -0.0), z(0.0, 1.0)], &[3])]);
        out
    }

    pub(crate) fn s_rrelu_with_noise_backward() -> Samples {
        vec![
            sample![
                tensor(F32, &[2, 3], 1),
                transposed(F32, &[2, 3], 2),
                tensor(F32, &[2, 3], 3),
                0.1,
                0.3,
                true,
                false
            ],
            sample![tensor(F64, &[3], 1), tensor(F64, &[3], 2), tensor(F64, &[3], 3), 0.1, 0.3, false, false],
        ]
    }

    pub(crate) fn s_rrelu_with_noise_functional() -> Samples {
        vec![
            sample![transposed(F32, &[2, 3], 1), tensor(F32, &[2, 3], 2)],
            sample![tensor(F64, &[3], 1), tensor(F64, &[3], 2), 0.1, 0.2],
        ]
    }
}
