//! Functions of one number.

use crate::pointwise::{
    Metas, Promotion, Result, as_empty_like, common, compute, infer, input, layout, not_for, op, operands, own,
    row_form, row_form_ask, run,
};
use crate::support::promote::{Operand, to_float};
use crate::support::{ensure, fresh};
use crate::views::{Rule as ViewRules, rule, view};
use restride_ir::{Args, Call, Dim, Exactness, Grad, Meta, OpDef, OpError, Scalar, ViewArgs, ViewOutcome};
use restride_kernels::pointwise::{self as k, Input, Join, Part};
use restride_tensor::DType::*;
use smallvec::smallvec;

fn infer_neg(a: &Args<'_, Meta>) -> Metas {
    ensure!(
        a.tensor(0)?.dtype != Bool,
        "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."
    );
    infer(a, &[0], &[], Promotion::Same, &k::NEG)
}
fn run_neg(c: &Call<'_>) -> Result<()> {
    run(c, &[0], &[], Promotion::Same, &k::NEG)
}

fn infer_not(a: &Args<'_, Meta>) -> Metas {
    infer(a, &[0], &[], Promotion::Same, &k::NOT)
}
/// Kernel of `bitwise_not`; `bool` has a function of its own.
fn run_not(c: &Call<'_>) -> Result<()> {
    let op = if c.args.tensor(0)?.dtype() == Bool { &k::NOT_BOOL } else { &k::NOT };
    run(c, &[0], &[], Promotion::Same, op)
}

/// One real number per complex number; `real` is the rule for real operands.
fn infer_part(a: &Args<'_, Meta>, real: Promotion) -> Metas {
    let operand = Operand::read(a, 0)?;
    let dtype = operand.dtype();
    let dtype = if dtype.is_complex() { dtype.real() } else { common(&[operand], real)? };
    Ok(smallvec![Meta::new(dtype, layout(&[operand], operand.dtype())?)])
}
fn run_part(c: &Call<'_>, which: Part) -> Result<()> {
    k::part(which, *c.args.tensor(0)?, &c.outs[0]).map_err(|e| OpError::new(e.to_string()))
}
fn infer_abs(a: &Args<'_, Meta>) -> Metas {
    infer_part(a, Promotion::NoBool)
}
fn run_abs(c: &Call<'_>) -> Result<()> {
    if c.args.tensor(0)?.dtype().is_complex() {
        return run_part(c, Part::Abs);
    }
    run(c, &[0], &[], Promotion::Same, &k::ABS)
}
/// PyTorch puts angles of complex numbers in row-major order, whatever theirs is.
fn infer_angle(a: &Args<'_, Meta>) -> Metas {
    let x = a.tensor(0)?;
    if x.dtype.is_complex() {
        return Ok(smallvec![fresh(x.dtype.real(), &x.layout.sizes)]);
    }
    infer_part(a, Promotion::Float)
}
fn run_angle(c: &Call<'_>) -> Result<()> {
    if c.args.tensor(0)?.dtype().is_complex() {
        return run_part(c, Part::Angle);
    }
    run(c, &[0], &[], Promotion::Float, &k::ANGLE)
}

/// Shape rule of `complex` and `polar`.
fn infer_join(a: &Args<'_, Meta>) -> Metas {
    let (x, y) = (a.tensor(0)?, a.tensor(1)?);
    if x.dtype != y.dtype || !matches!(x.dtype, F32 | F64) {
        return Err(OpError::new(format!(
            "Expected both inputs to be Float or Double tensors but got {} and {}",
            crate::support::promote::name(x.dtype),
            crate::support::promote::name(y.dtype)
        )));
    }
    Ok(smallvec![Meta::new(x.dtype.complex(), layout(&operands(a, &[0, 1])?, x.dtype)?)])
}
fn run_join(c: &Call<'_>, how: Join) -> Result<()> {
    let (x, y) = (c.args.tensor(0)?, c.args.tensor(1)?);
    k::join(how, x.dtype(), *x, *y, &c.outs[0]).map_err(|e| OpError::new(e.to_string()))
}

/// View rule: a real tensor is its own conjugate, and PyTorch returns the tensor itself.
struct ConjPhysical;
impl ViewRules for ConjPhysical {
    fn run<D: Dim>(a: &ViewArgs<'_, D>) -> Result<ViewOutcome<D>> {
        let t = a.tensor(0)?;
        if t.dtype.is_complex() { Ok(ViewOutcome::Copy) } else { Ok(view(t.dtype, t.layout.clone())) }
    }
}
fn infer_conj(a: &Args<'_, Meta>) -> Metas {
    infer(a, &[0], &[], Promotion::Same, &k::CONJ)
}
fn run_conj(c: &Call<'_>) -> Result<()> {
    run(c, &[0], &[], Promotion::Same, &k::CONJ)
}

/// PyTorch rounds integers only if `decimals` is absent.
fn infer_round(a: &Args<'_, Meta>) -> Metas {
    let dtype = a.tensor(0)?.dtype;
    if !dtype.is_float() {
        return not_for(dtype);
    }
    infer(a, &[0], &[], Promotion::NoBool, &k::ROUND)
}
fn run_round(c: &Call<'_>) -> Result<()> {
    let decimals = c.args.opt_scalar(1)?.unwrap_or(Scalar::Int(0));
    let dtype = c.args.tensor(0)?.dtype();
    if decimals.as_i64() == 0 {
        return run(c, &[0], &[], Promotion::NoBool, &k::ROUND);
    }
    compute(c, &k::ROUND_DECIMALS, dtype, &[input(&c.args, 0)?, Input::Parameter(decimals)])
}

fn infer_logit(a: &Args<'_, Meta>) -> Metas {
    infer(a, &[0], &[], Promotion::Float, &k::LOGIT)
}
fn run_logit(c: &Call<'_>) -> Result<()> {
    let dtype = to_float(c.args.tensor(0)?.dtype());
    match c.args.opt_float(1)? {
        // PyTorch ignores a negative bound.
        Some(eps) if eps >= 0.0 => {
            compute(c, &k::LOGIT_EPS, dtype, &[input(&c.args, 0)?, Input::Parameter(Scalar::Float(eps))])
        }
        _ => run(c, &[0], &[], Promotion::Float, &k::LOGIT),
    }
}

/// `polygamma(n, self)`
fn infer_polygamma(a: &Args<'_, Meta>) -> Metas {
    ensure!(a.int(0)? >= 0, "polygamma(n, x) does not support negative n.");
    infer(a, &[1], &[], Promotion::Float, &k::POLYGAMMA)
}
fn run_polygamma(c: &Call<'_>) -> Result<()> {
    let dtype = to_float(c.args.tensor(1)?.dtype());
    let n = Scalar::Float(c.args.int(0)? as f64);
    compute(c, &k::POLYGAMMA, dtype, &[input(&c.args, 1)?, Input::Parameter(n)])
}

/// `frexp`: a mantissa and an exponent of 2.
fn infer_frexp(a: &Args<'_, Meta>) -> Metas {
    let x = a.tensor(0)?;
    ensure!(x.dtype.is_float(), "torch.frexp() only supports floating-point dtypes");
    let out = infer(a, &[0], &[], Promotion::Same, &k::MANTISSA)?;
    let power = Meta::new(I32, out[0].layout.clone());
    Ok(smallvec![out[0].clone(), power])
}
fn run_frexp(c: &Call<'_>) -> Result<()> {
    let (x, dtype) = (input(&c.args, 0)?, c.outs[0].dtype());
    k::compute(&k::EXPONENT, dtype, &[x], &c.outs[1], c.ctx.threads).map_err(|e| OpError::new(e.to_string()))?;
    compute(c, &k::MANTISSA, dtype, &[x])
}

/// `square`: a product, which is an integer for `bool`.
fn infer_square(a: &Args<'_, Meta>) -> Metas {
    let mut out = infer(a, &[0], &[], Promotion::Same, &k::SQUARE)?;
    if out[0].dtype == Bool {
        out[0].dtype = I64;
    }
    Ok(out)
}
fn run_square(c: &Call<'_>) -> Result<()> {
    compute(c, &k::SQUARE, c.outs[0].dtype(), &[input(&c.args, 0)?])
}

fn infer_nan_to_num(a: &Args<'_, Meta>) -> Metas {
    as_empty_like(a, infer(a, &[0], &[], Promotion::Same, &k::NAN_TO_NUM))
}
fn run_nan_to_num(c: &Call<'_>) -> Result<()> {
    let dtype = c.args.tensor(0)?.dtype();
    let largest = match dtype.real() {
        F16 => 65504.0,
        BF16 => restride_tensor::bf16::MAX.to_f64(),
        F32 => f32::MAX as f64,
        _ => f64::MAX,
    };
    let number = |i: usize, default: f64| -> Result<Input<'_>> {
        Ok(Input::Parameter(Scalar::Float(c.args.opt_float(i)?.unwrap_or(default))))
    };
    let inputs = [input(&c.args, 0)?, number(1, 0.0)?, number(2, largest)?, number(3, -largest)?];
    compute(c, &k::NAN_TO_NUM, dtype, &inputs)
}

/// Declares a change of the unit of angles, whose result has the strides of `empty_like`.
macro_rules! degrees {
    ($schema:literal, $f:expr, $samples:expr) => {
        own!(
            $schema,
            |a| as_empty_like(a, infer(a, &[0], &[], Promotion::Float, &$f)),
            |c| run(c, &[0], &[], Promotion::Float, &$f),
            (0),
            $samples
        )
    };
}

pub(crate) static OPS: &[OpDef] = table![
    own!("neg", infer_neg, run_neg, (0), || unary(NUMBERS, -2.0, 2.0)).in_rows(|a, _| row_form(
        a,
        &[0],
        &[],
        Promotion::Same,
        &k::NEG
    )),
    own!("abs", infer_abs, run_abs, (0), || odd(NUMBERS, -2.0, 2.0)).in_rows(|a, _| row_form(
        a,
        &[0],
        &[],
        Promotion::Same,
        &k::ABS
    )),
    own!("angle", infer_angle, run_angle, (0), || odd(ALL, -2.0, 2.0)),
    own!("bitwise_not", infer_not, run_not, (0), || unary(BITS, -2.0, 2.0)).in_rows(|a, _| row_form_ask(
        a,
        &[0],
        &k::LOGICAL_NOT
    )),
    own!("complex", infer_join, |c| run_join(c, Join::Parts), (), joins),
    own!("polar", infer_join, |c| run_join(c, Join::Polar), (), joins),
    OpDef {
        view: Some(rule::<ConjPhysical>()),
        itself: true,
        may_return_operand: true,
        exactness: Exactness::Exact,
        ..own!("conj_physical", infer_conj, run_conj, (0), || unary(ALL, -2.0, 2.0))
    },
    op!("_conj_physical", Same(0), k::CONJ, || vec![sample![tensor(C64, &[2, 3], 1)], sample![tensor(C128, &[3], 1)]]),
    own!("round.decimals", infer_round, run_round, (0), decimals).graded(Grad::Zero),
    own!("polygamma", infer_polygamma, run_polygamma, (1), derivatives),
    own!("frexp.Tensor", infer_frexp, run_frexp, (), || unary(REAL, -9.0, 9.0)),
    restride_ir::OpDef {
        twin: Some(restride_ir::TwinDecl {
            op: "aten.polygamma.default",
            args: &[1, 0],
            writes: &[(0, 0)],
            returns: &[restride_ir::TwinReturn::Arg(0)],
            when: None,
        }),
        ..restride_ir::OpDef::new("polygamma_")
    },
    own!("logit", infer_logit, run_logit, (0), || logits(Some(0.1))),
    own!("nan_to_num", infer_nan_to_num, run_nan_to_num, (0), replaced),
    op!("sign", Same(0), k::SIGN, || odd(ALL_REAL, -2.0, 2.0)).graded(Grad::Zero),
    op!("exp", Float(0), k::EXP, || odd(ALL, -3.0, 3.0)),
    op!("exp2", Float(0), k::EXP2, || unary(ALL, -3.0, 3.0)),
    op!("expm1", Float(0), k::EXPM1, || unary(ALL_REAL, -3.0, 3.0)),
    op!("log", Float(0), k::LOG, || odd(ALL, 0.05, 5.0)),
    op!("log2", Float(0), k::LOG2, || unary(ALL, 0.05, 5.0)),
    op!("log10", Float(0), k::LOG10, || unary(ALL, 0.05, 5.0)),
    op!("log1p", Float(0), k::LOG1P, || unary(ALL_REAL, -0.9, 5.0)),
    op!("sqrt", Float(0), k::SQRT, || odd(ALL, -0.5, 5.0)),
    op!("rsqrt", Float(0), k::RSQRT, || unary(ALL, 0.05, 5.0)),
    op!("reciprocal", Float(0), k::RECIPROCAL, || unary(ALL, 0.1, 3.0)),
    op!("sin", Float(0), k::SIN, || unary(ALL, -10.0, 10.0)),
    op!("cos", Float(0), k::COS, || unary(ALL, -10.0, 10.0)),
    op!("tan", Float(0), k::TAN, || unary(ALL, -1.4, 1.4)),
    op!("asin", Float(0), k::ASIN, || unary(ALL, -1.1, 1.1)),
    op!("acos", Float(0), k::ACOS, || unary(ALL, -1.1, 1.1)),
    op!("atan", Float(0), k::ATAN, || unary(ALL, -3.0, 3.0)),
    op!("sinh", Float(0), k::SINH, || unary(ALL, -3.0, 3.0)),
    op!("cosh", Float(0), k::COSH, || unary(ALL, -3.0, 3.0)),
    op!("tanh", Float(0), k::TANH, || odd(ALL, -3.0, 3.0)),
    op!("asinh", Float(0), k::ASINH, || unary(ALL, -3.0, 3.0)),
    op!("acosh", Float(0), k::ACOSH, || unary(ALL, 0.9, 4.0)),
    op!("atanh", Float(0), k::ATANH, || unary(ALL, -0.95, 0.95)),
    op!("erf", Float(0), k::ERF, || odd(ALL_REAL, -3.0, 3.0)),
    op!("erfc", Float(0), k::ERFC, || unary(ALL_REAL, -3.0, 3.0)),
    op!("erfinv", Float(0), k::ERFINV, || unary(ALL_REAL, -1.05, 1.05)),
    op!("lgamma", Float(0), k::LGAMMA, || unary(ALL_REAL, -3.0, 4.0)),
    op!("digamma", Float(0), k::DIGAMMA, || unary(ALL_REAL, -3.0, 4.0)),
    op!("sigmoid", Float(0), k::SIGMOID, || odd(ALL, -4.0, 4.0)),
    op!("sinc", Float(0), k::SINC, || unary(ALL, -3.0, 3.0)),
    degrees!("deg2rad", k::DEG2RAD, || unary(ALL_REAL, -300.0, 300.0)),
    degrees!("rad2deg", k::RAD2DEG, || unary(ALL_REAL, -3.0, 3.0)),
    op!("ceil", NoBool(0), k::CEIL, || odd(NO_BOOL, -3.0, 3.0)).graded(Grad::Zero),
    op!("floor", NoBool(0), k::FLOOR, || unary(NO_BOOL, -3.0, 3.0)).graded(Grad::Zero),
    op!("round", NoBool(0), k::ROUND, || odd(NO_BOOL, -3.0, 3.0)).graded(Grad::Zero),
    op!("trunc", NoBool(0), k::TRUNC, || unary(NO_BOOL, -3.0, 3.0)).graded(Grad::Zero),
    op!("frac", Same(0), k::FRAC, || odd(REAL, -3.0, 3.0)),
    op!("sgn", Same(0), k::SGN, || odd(ALL, -2.0, 2.0)),
    own!("square", infer_square, run_square, (0), || unary(ALL, -3.0, 3.0)).in_rows(|a, _| row_form(
        a,
        &[0],
        &[],
        Promotion::Same,
        &k::SQUARE
    )),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    use super::*;
    pub(super) use crate::pointwise::samples::*;

    /// Sample tensors with special numbers beside a range.
    pub(crate) fn odd(types: Types, lo: f64, hi: f64) -> Vec<Sample> {
        let mut out = unary(types, lo, hi);
        out.extend(special(REAL).split_off(every_layout(REAL, lo, hi).len()));
        out
    }

    pub(crate) fn joins() -> Vec<Sample> {
        pairs(REAL)
            .into_iter()
            .filter(|(a, b)| a.dtype() == b.dtype() && a.dtype() != F16)
            .map(|(a, b)| sample![a, b])
            .collect()
    }

    pub(crate) fn logits(eps: Option<f64>) -> Vec<Sample> {
        let mut out = unary(REAL, 0.05, 0.95);
        if let Some(eps) = eps {
            out.extend(unary_with(REAL, -0.2, 1.2, &[eps]));
        }
        out
    }

    pub(crate) fn decimals() -> Vec<Sample> {
        let of = |d: DType, n: i64| sample![tensor(d, &[2, 3], 1), n];
        vec![of(F32, 2), of(F64, 3), of(F32, 0), of(F32, -1), of(I64, 0)]
    }

    pub(crate) fn derivatives() -> Vec<Sample> {
        let of = |types, n: i64, lo, hi| every_layout(types, lo, hi).into_iter().map(move |t| sample![n, t]);
        let mut out: Vec<Sample> = of(ALL_REAL, 0, 0.4, 5.0).collect();
        // Near integers, the poles, PyTorch's values are rounding errors.
        out.extend((1..4).flat_map(|n| of(REAL, n, 0.4, 5.0)));
        out.extend(of(REAL, 1, -0.8, -0.2));
        out.push(sample![-1, tensor(F64, &[2], 1)]);
        out
    }

    pub(crate) fn replaced() -> Vec<Sample> {
        let mut out = odd(ALL_REAL, -2.0, 2.0);
        out.extend(odd(REAL, -2.0, 2.0).into_iter().map(|mut s| {
            s.args.extend([1.5, 7.0, -7.0].map(|x| restride_ir::Arg::Scalar(Scalar::Float(x))));
            s
        }));
        out
    }
}
