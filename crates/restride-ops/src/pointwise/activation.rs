//! Activation functions, their derivatives, and rounding to quantized values.

use crate::pointwise::{
    Metas, Promotion, Result, as_empty_like, compute, infer, input, not_for, op, own, parameter_of, row_form,
    row_form_with, run,
};
use crate::support::promote::check_holds;
use crate::support::{emit, ensure, without_scratch};
use restride_ir::{Arg, Args, Call, Emit, Meta, OpDef, OpError, Scalar, Val};
use restride_kernels::pointwise::{self as k, Input, Pointwise};
use restride_tensor::{DType::*, Dims};
use smallvec::{SmallVec, smallvec};

fn infer_one(a: &Args<'_, Meta>, op: &Pointwise) -> Metas {
    infer(a, &[0], &[], Promotion::NoBool, op)
}
/// Runs a kernel with the operand and parameters that the call does not list.
fn run_with(c: &Call<'_>, op: &Pointwise, params: &[f64]) -> Result<()> {
    let mut inputs: SmallVec<[Input<'_>; 5]> = smallvec![input(&c.args, 0)?];
    inputs.extend(params.iter().map(|&p| Input::Parameter(Scalar::Float(p))));
    compute(c, op, c.outs[0].dtype(), &inputs)
}

fn infer_hardtanh(a: &Args<'_, Meta>) -> Metas {
    let t = a.tensor(0)?;
    for i in [1, 2] {
        check_holds(t.dtype, a.scalar(i)?)?;
    }
    if t.dtype == U8 && (a.scalar(1)?.as_f64() < 0.0 || a.scalar(2)?.as_f64() < 0.0) {
        return Err(OpError::new("cannot do hardtanh on an unsigned type with negative limits"));
    }
    as_empty_like(a, infer_one(a, &k::CLAMP))
}
fn run_clamp(c: &Call<'_>) -> Result<()> {
    run(c, &[0], &[1, 2], Promotion::NoBool, &k::CLAMP)
}

const SELU_ALPHA: f64 = 1.673_263_242_354_377_2;
const SELU_SCALE: f64 = 1.050_700_987_355_480_5;

fn infer_celu(a: &Args<'_, Meta>) -> Metas {
    ensure!(a.float(1)? != 0.0, "ZeroDivisionError: alpha cannot be 0 for CELU");
    infer_one(a, &k::ELU)
}
fn run_celu(c: &Call<'_>) -> Result<()> {
    let alpha = c.args.float(1)?;
    run_with(c, &k::ELU, &[alpha, 1.0, 1.0 / alpha])
}

/// The variant of `gelu`, by its `approximate` argument.
fn gelu<V>(
    a: &Args<'_, V>,
    at: usize,
    exact: &'static Pointwise,
    tanh: &'static Pointwise,
) -> Result<&'static Pointwise> {
    match a.opt_str(at)? {
        None | Some("none") => Ok(exact),
        Some("tanh") => Ok(tanh),
        Some(_) => Err(OpError::new("approximate argument must be either none or tanh.")),
    }
}

/// `prelu` with one weight, or with one per channel (dimension 1).
fn prelu(e: &mut dyn Emit, a: &Args<'_, Val>) -> Result<SmallVec<[Val; 1]>> {
    let (x, weight) = (*a.tensor(0)?, *a.tensor(1)?);
    let (t, w) = (e.meta(x), e.meta(weight));
    ensure!(
        t.dtype == w.dtype,
        "prelu: Type promoting not supported. Got {} and {}",
        crate::support::promote::name(t.dtype),
        crate::support::promote::name(w.dtype)
    );
    ensure!(w.rank() <= 1, "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {}", w.rank());
    let count = w.layout.numel();
    let mut sizes: Dims<i64> = smallvec![1; t.rank()];
    if count != 1 {
        let channels = t.sizes().get(1).or(t.sizes().first()).copied().unwrap_or(1);
        ensure!(
            t.rank() != 0 && channels == count,
            "Mismatch of parameter numbers and input channel size. Found parameter numbers = {count} and channel size = {channels}."
        );
        sizes[1.min(t.rank() - 1)] = count;
    }
    let sizes: Vec<Scalar> = sizes.into_iter().map(Scalar::Int).collect();
    let shaped = e.call("aten.view.default", &[Arg::Value(weight), Arg::Scalars(sizes)])?[0];
    e.call("aten._prelu_kernel.default", &[Arg::Value(x), Arg::Value(shaped)])
}

/// The halves of `glu`'s operand, the second one as its sigmoid, and their dimension counted from the front.
pub(super) fn gated(e: &mut dyn Emit, x: Val, dim: i64) -> Result<(Val, Val, i64)> {
    let t = e.meta(x);
    ensure!(t.rank() != 0, "glu does not support 0-dimensional tensors");
    let dim = t.layout.dim(dim)?;
    let size = t.sizes()[dim];
    ensure!(size % 2 == 0, "Halving dimension must be even, but dimension {dim} is size {size}");
    let d = dim as i64;
    let first = emit!(e, "aten.slice.Tensor", x, d, 0, size / 2, 1)?;
    let second = emit!(e, "aten.slice.Tensor", x, d, size / 2, size, 1)?;
    Ok((first, emit!(e, "aten.sigmoid.default", second)?, d))
}

/// `glu`: multiplies one half by the sigmoid of the other.
fn glu(e: &mut dyn Emit, a: &Args<'_, Val>) -> Result<SmallVec<[Val; 1]>> {
    let (first, gate, _) = gated(e, *a.tensor(0)?, a.int(1)?)?;
    Ok(smallvec![emit!(e, "aten.mul.Tensor", first, gate)?])
}

/// Types of the numbers rounded to a quantized grid, and of the mask of numbers within range.
fn infer_fake_quantize(a: &Args<'_, Meta>) -> Metas {
    let t = a.tensor(0)?;
    if !t.dtype.is_float() {
        return not_for(t.dtype);
    }
    let (zero, lo, hi) = (a.int(2)?, a.int(3)?, a.int(4)?);
    ensure!(lo <= hi, "`quant_min` should be less than or equal to `quant_max`.");
    ensure!((lo..=hi).contains(&zero), "`zero_point` must be between `quant_min` and `quant_max`.");
    let layout = crate::support::strides::dense_like(&t.layout);
    Ok(smallvec![Meta::new(t.dtype, layout.clone()), Meta::new(Bool, layout)])
}
fn run_fake_quantize(c: &Call<'_>) -> Result<()> {
    let mut inputs: SmallVec<[Input<'_>; 5]> = smallvec![input(&c.args, 0)?];
    for i in 1..5 {
        inputs.push(Input::Parameter(c.args.scalar(i)?));
    }
    let dtype = c.outs[0].dtype();
    k::decide(&k::FAKE_QUANTIZE_MASK, dtype, &inputs, &c.outs[1], c.ctx.threads)
        .map_err(|e| OpError::new(e.to_string()))?;
    compute(c, &k::FAKE_QUANTIZE, dtype, &inputs)
}
fn fake_quantize(e: &mut dyn Emit, a: &Args<'_, Val>) -> Result<SmallVec<[Val; 1]>> {
    let both = e.call("aten.fake_quantize_per_tensor_affine_cachemask.default", a.0)?;
    Ok(smallvec![both[0]])
}

/// `elu_backward` takes the result or the operand; an argument says which.
fn elu_backward<V>(a: &Args<'_, V, Scalar>) -> Result<&'static Pointwise> {
    let is_result = match a.0.get(4) {
        Some(Arg::Scalar(s)) => s.as_bool(),
        _ => return Err(OpError::new("argument 4 is not a bool")),
    };
    Ok(if is_result { &k::ELU_BACKWARD_RESULT } else { &k::ELU_BACKWARD })
}
fn run_elu_backward(c: &Call<'_>) -> Result<()> {
    let mut inputs: SmallVec<[Input<'_>; 5]> = smallvec![input(&c.args, 0)?, input(&c.args, 5)?];
    for i in 1..4 {
        inputs.push(Input::Parameter(c.args.scalar(i)?));
    }
    compute(c, elu_backward(&c.args)?, c.outs[0].dtype(), &inputs)
}

/// `logit_backward` with or without bounds.
fn run_logit_backward(c: &Call<'_>) -> Result<()> {
    let pair = [input(&c.args, 0)?, input(&c.args, 1)?];
    match c.args.opt_float(2)? {
        Some(eps) if eps >= 0.0 => {
            let eps = Input::Parameter(Scalar::Float(eps));
            compute(c, &k::LOGIT_EPS_BACKWARD, c.outs[0].dtype(), &[pair[0], pair[1], eps])
        }
        _ => compute(c, &k::LOGIT_BACKWARD, c.outs[0].dtype(), &pair),
    }
}

/// `log_sigmoid` returns row-major results on the CPU.
fn infer_log_sigmoid(a: &Args<'_, Meta>) -> Metas {
    let out = infer_one(a, &k::LOG_SIGMOID)?;
    Ok(smallvec![Meta::contiguous(out[0].dtype, out[0].sizes())])
}
/// `log_sigmoid` with the buffer that its derivative reads on the CPU.
fn infer_log_sigmoid_forward(a: &Args<'_, Meta>) -> Metas {
    let out = infer_log_sigmoid(a)?;
    Ok(smallvec![out[0].clone(), out[0].clone()])
}
fn run_log_sigmoid_forward(c: &Call<'_>) -> Result<()> {
    let x = [input(&c.args, 0)?];
    let dtype = c.outs[0].dtype();
    k::compute(&k::LOG_SIGMOID_BUFFER, dtype, &x, &c.outs[1], c.ctx.threads)
        .map_err(|e| OpError::new(e.to_string()))?;
    compute(c, &k::LOG_SIGMOID, dtype, &x)
}

pub(crate) static OPS: &[OpDef] = table![
    op!("relu", NoBool(0), k::RELU, || whole(activation(), &[])),
    own!("relu6", |a| as_empty_like(a, infer_one(a, &k::CLAMP)), |c| run_with(c, &k::CLAMP, &[0.0, 6.0]), (0), || {
        whole(activation(), &[])
    })
    .in_rows(|a, r| row_form_with(a, r[0].dtype, &[0], &[0.0, 6.0], &k::CLAMP)),
    own!("hardtanh", infer_hardtanh, run_clamp, (0), || whole(with(&[-0.5, 1.5]), &[-2, 2])).in_rows(|a, _| row_form(
        a,
        &[0],
        &[1, 2],
        Promotion::NoBool,
        &k::CLAMP
    )),
    op!("leaky_relu", Same(0; 1), k::LEAKY_RELU, || with(&[0.2])),
    op!("elu", Same(0; 1, 2, 3), k::ELU, || with(&[1.5, 0.5, 2.0])),
    own!("celu", infer_celu, run_celu, (0), || with(&[1.5])),
    own!("selu", |a| infer_one(a, &k::ELU), |c| run_with(c, &k::ELU, &[SELU_ALPHA, SELU_SCALE, 1.0]), (0), activation),
    own!(
        "gelu",
        |a| infer_one(a, gelu(a, 1, &k::GELU, &k::GELU_TANH)?),
        |c| run(c, &[0], &[], Promotion::Same, gelu(&c.args, 1, &k::GELU, &k::GELU_TANH)?),
        (0),
        gelus
    )
    .in_rows(|a, _| row_form(a, &[0], &[], Promotion::Same, gelu(a, 1, &k::GELU, &k::GELU_TANH).ok()?)),
    op!("silu", Same(0), k::SILU, activation),
    op!("mish", Same(0), k::MISH, activation),
    op!("softplus", Same(0; 1, 2), k::SOFTPLUS, || with(&[2.0, 3.0])),
    op!("hardsigmoid", Same(0), k::HARDSIGMOID, activation),
    op!("hardswish", Same(0), k::HARDSWISH, activation),
    op!("hardshrink", Same(0; 1), k::HARDSHRINK, || with(&[1.0])),
    OpDef {
        kernel: restride_ir::Kernel::Fixed(|c| {
            let (dtype, lambda) = (c.outs[0].dtype(), c.args.scalar(1)?);
            compute(c, &k::SOFTSHRINK, dtype, &[input(&c.args, 0)?, parameter_of(dtype, lambda)])
        }),
        ..op!("softshrink", Same(0; 1), k::SOFTSHRINK, || with(&[1.0]))
    },
    own!("log_sigmoid", infer_log_sigmoid, |c| run(c, &[0], &[], Promotion::NoBool, &k::LOG_SIGMOID), (0), activation)
        .in_rows(|a, _| row_form(a, &[0], &[], Promotion::NoBool, &k::LOG_SIGMOID)),
    own!("log_sigmoid_forward", infer_log_sigmoid_forward, run_log_sigmoid_forward, (), || unary(REAL, -4.0, 4.0)),
    op!("threshold", NoBool(0; 1, 2), k::THRESHOLD, || whole(with(&[0.5, -1.0]).split_off(activation().len()), &[1, 7])),
    op!("_prelu_kernel", Same(0, 1), k::PRELU, s_prelu_kernel),
    OpDef { decompose: Some(prelu), samples: samples!(s_prelu), ..OpDef::new("prelu") },
    OpDef { decompose: Some(glu), samples: samples!(s_glu), ..OpDef::new("glu") },
    without_scratch(
        "fake_quantize_per_tensor_affine_cachemask",
        infer_fake_quantize,
        run_fake_quantize,
        samples!(quantized),
    ),
    OpDef {
        decompose: Some(fake_quantize),
        samples: samples!(quantized),
        ..OpDef::new("fake_quantize_per_tensor_affine")
    },
    op!("sigmoid_backward", Same(0, 1), k::SIGMOID_BACKWARD, gradients_of_results),
    op!("tanh_backward", Same(0, 1), k::TANH_BACKWARD, gradients_of_results),
    own!(
        "threshold_backward",
        |a| infer(a, &[1, 0], &[2], Promotion::Same, &k::THRESHOLD_BACKWARD),
        |c| run(c, &[0, 1], &[2], Promotion::Same, &k::THRESHOLD_BACKWARD),
        (0, 1),
        || gradients(&[F(0.5)])
    ),
    own!(
        "leaky_relu_backward",
        |a| infer(a, &[1, 0], &[2], Promotion::Same, &k::LEAKY_RELU_BACKWARD),
        |c| run(c, &[0, 1], &[2], Promotion::Same, &k::LEAKY_RELU_BACKWARD),
        (0, 1),
        || gradients(&[F(0.2), Scalar::Bool(false)])
    ),
    own!(
        "elu_backward",
        |a| infer(a, &[0, 5], &[], Promotion::Same, elu_backward(a)?),
        run_elu_backward,
        (0, 5),
        s_elu_backward
    ),
    own!(
        "gelu_backward",
        |a| infer(a, &[0, 1], &[], Promotion::Same, gelu(a, 2, &k::GELU_BACKWARD, &k::GELU_TANH_BACKWARD)?),
        |c| run(c, &[0, 1], &[], Promotion::Same, gelu(&c.args, 2, &k::GELU_BACKWARD, &k::GELU_TANH_BACKWARD)?),
        (0, 1),
        s_gelu_backward
    ),
    op!("silu_backward", Same(0, 1), k::SILU_BACKWARD, || gradients(&[])),
    op!("mish_backward", Same(0, 1), k::MISH_BACKWARD, || gradients(&[])),
    op!("softplus_backward", Same(0, 1; 2, 3), k::SOFTPLUS_BACKWARD, || gradients(&[F(2.0), F(3.0)])),
    op!("hardsigmoid_backward", Same(0, 1), k::HARDSIGMOID_BACKWARD, || gradients(&[])),
    op!("hardswish_backward", Same(0, 1), k::HARDSWISH_BACKWARD, || gradients(&[])),
    op!("hardtanh_backward", Same(0, 1; 2, 3), k::HARDTANH_BACKWARD, || gradients(&[F(-0.5), F(1.5)])),
    op!("hardshrink_backward", Same(0, 1; 2), k::HARDSHRINK_BACKWARD, || gradients(&[F(0.5)])),
    op!("softshrink_backward", Same(0, 1; 2), k::HARDSHRINK_BACKWARD, || gradients(&[F(0.5)])),
    own!(
        "logit_backward",
        |a| infer(a, &[0, 1], &[], Promotion::Same, &k::LOGIT_BACKWARD),
        run_logit_backward,
        (0, 1),
        || gradients(&[F(0.1)]).into_iter().chain(gradients(&[])).collect()
    ),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    use super::*;
    pub(super) use crate::pointwise::samples::*;
    pub(super) use crate::support::samples::*;

    pub(crate) fn quantized() -> Vec<Sample> {
        let of = |t| sample![t, 0.1, 3, -8, 7];
        vec![
            of(tensor(F32, &[2, 3], 1)),
            of(transposed(F32, &[2, 3], 1)),
            of(tensor(F32, &[0], 1)),
            of(tensor(F64, &[5], 1)),
        ]
    }

    pub(crate) fn activation() -> Vec<Sample> {
        let mut out = unary(REAL, -4.0, 4.0);
        out.extend(special(REAL).split_off(every_layout(REAL, 0.0, 1.0).len()));
        out
    }

    pub(crate) fn with(params: &[f64]) -> Vec<Sample> {
        let mut out = activation();
        out.extend(unary_with(REAL, -4.0, 4.0, params));
        out
    }

    pub(crate) fn whole(mut out: Vec<Sample>, params: &[i64]) -> Vec<Sample> {
        for d in [I64, I32, I8] {
            let mut s = sample![tensor(d, &[2, 3], 1)];
            s.args.extend(params.iter().map(|&p| Arg::Scalar(Scalar::Int(p))));
            out.push(s);
        }
        out
    }

    pub(crate) fn gelus() -> Vec<Sample> {
        let mut out = activation();
        out.extend(unary(REAL, -4.0, 4.0).into_iter().map(|mut s| {
            s.args.push(Arg::Str("tanh".into()));
            s
        }));
        out.push(sample![tensor(F32, &[2], 1), "sigmoid"]);
        out
    }

    /// Sample calls with a gradient and a tensor of equal type, followed by arguments.
    pub(crate) fn gradients(params: &[Scalar]) -> Vec<Sample> {
        let mut out = Vec::new();
        for (i, x) in every_layout(REAL, -4.0, 4.0).into_iter().enumerate() {
            let g = crate::support::samples::laid(
                x.dtype(),
                restride_ir::Layout::contiguous(&x.layout().sizes),
                50 + i as u64,
            );
            let mut s = sample![g, x];
            s.args.extend(params.iter().map(|&p| Arg::Scalar(p)));
            out.push(s);
        }
        out
    }

    /// Sample gradients of functions with results between 0 and 1.
    pub(crate) fn gradients_of_results() -> Vec<Sample> {
        let complex =
            [C64, C128].map(|t| sample![tensor(t, &[2, 3], 1), laid(t, Layout::permuted(&[2, 3], &[1, 0]), 2)]);
        gradients(&[]).into_iter().take(6).chain(complex).collect()
    }

    pub(crate) fn named(mut out: Vec<Sample>, text: &str) -> Vec<Sample> {
        out.iter_mut().for_each(|s| s.args.push(Arg::Str(text.into())));
        out
    }

    pub(crate) const F: fn(f64) -> Scalar = Scalar::Float;

    pub(crate) fn s_prelu_kernel() -> Samples {
        vec![
            sample![tensor(F32, &[2, 3, 4], 1), tensor(F32, &[1, 3, 1], 2)],
            sample![transposed(F32, &[2, 3, 4], 1), tensor(F32, &[1, 1, 1], 2)],
        ]
    }

    pub(crate) fn s_prelu() -> Samples {
        vec![
            sample![tensor(F32, &[2, 3, 4], 1), tensor(F32, &[3], 2)],
            sample![transposed(F32, &[2, 3, 4], 1), tensor(F32, &[1], 2)],
            sample![tensor(F64, &[5], 1), tensor(F64, &[], 2)],
            sample![tensor(F64, &[], 1), tensor(F64, &[1], 2)],
            sample![tensor(F32, &[2, 3], 1), tensor(F32, &[4], 2)],
        ]
    }

    pub(crate) fn s_glu() -> Samples {
        vec![
            sample![tensor(F32, &[2, 6], 1)],
            sample![transposed(F32, &[4, 3, 2], 1), 0],
            sample![tensor(F64, &[3], 1)],
            sample![tensor(BF16, &[0, 4], 1), -1],
        ]
    }

    pub(crate) fn s_elu_backward() -> Samples {
        let mut out = Vec::new();
        for is_result in [false, true] {
            for mut s in gradients(&[]) {
                let x = s.args.pop().expect("a gradient and a tensor");
                s.args.extend([1.5, 1.0, 2.0].map(|p| Arg::Scalar(Scalar::Float(p))));
                s.args.extend([Arg::Scalar(Scalar::Bool(is_result)), x]);
                out.push(s);
            }
        }
        out
    }

    pub(crate) fn s_gelu_backward() -> Samples {
        let mut out = named(gradients(&[]), "none");
        out.extend(named(gradients(&[]), "tanh"));
        out
    }
}
