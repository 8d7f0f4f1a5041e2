//! Arithmetic of two or more operands.

use crate::pointwise::{
    Metas, Promotion, Result, check_alpha, common, compute, factor, infer, input, inputs, op, operands, own,
    parameter_of, row_form, row_form_with, run, run_by_factor,
};
use crate::support::ensure;
use crate::support::promote::Operand;
use restride_ir::{Args, Call, Grad, Meta, OpDef, OpError, RowForm, Scalar};
use restride_kernels::pointwise::{self as k, Input, Pointwise};
use restride_kernels::support::convert::Compute;
use restride_tensor::DType::*;

/// `add`, `sub` and `rsub`: two operands followed by `alpha`.
fn infer_scaled(a: &Args<'_, Meta>) -> Metas {
    let out = infer(a, &[0, 1], &[], Promotion::Same, &k::ADD)?;
    check_alpha(out[0].dtype, a.opt_scalar(2)?.unwrap_or(Scalar::Int(1)))?;
    Ok(out)
}

fn infer_sub(a: &Args<'_, Meta>) -> Metas {
    let [x, y] = [Operand::read(a, 0)?.dtype(), Operand::read(a, 1)?.dtype()];
    ensure!(
        x != Bool || y != Bool,
        "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead."
    );
    ensure!(
        x != Bool && y != Bool,
        "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."
    );
    infer_scaled(a)
}

/// `rsub` is `sub` with exchanged operands.
fn infer_rsub(a: &Args<'_, Meta>) -> Metas {
    infer_sub(a)?;
    infer(a, &[1, 0], &[], Promotion::Same, &k::SUB)
}

/// Skips the multiplication if `alpha` is 1: the function and the positions of its parameters.
fn by_alpha<'p, V>(
    a: &Args<'_, V>,
    plain: &'p Pointwise,
    scaled: &'p Pointwise,
) -> Result<(&'p Pointwise, &'static [usize])> {
    Ok(match a.opt_scalar(2)? {
        None | Some(Scalar::Int(1) | Scalar::Float(1.0)) => (plain, &[]),
        Some(_) => (scaled, &[2]),
    })
}
fn run_scaled(c: &Call<'_>, plain: &Pointwise, scaled: &Pointwise) -> Result<()> {
    let (op, params) = by_alpha(&c.args, plain, scaled)?;
    let dtype = common(&operands(&c.args, &[0, 1])?, Promotion::Same)?;
    let mut all = inputs(&c.args, &[0, 1])?;
    for &p in params {
        all.push(parameter_of(dtype, c.args.scalar(p)?));
    }
    compute(c, op, dtype, &all)
}
fn scaled_rows(a: &Args<'_, Meta>, plain: &Pointwise, scaled: &Pointwise) -> Option<RowForm> {
    let (op, params) = by_alpha(a, plain, scaled).ok()?;
    row_form(a, &[0, 1], params, Promotion::Same, op)
}

fn run_add(c: &Call<'_>) -> Result<()> {
    run_scaled(c, &k::ADD, &k::ADD_SCALED)
}
fn run_sub(c: &Call<'_>) -> Result<()> {
    run_scaled(c, &k::SUB, &k::SUB_SCALED)
}
fn run_rsub(c: &Call<'_>) -> Result<()> {
    let dtype = common(&operands(&c.args, &[0, 1])?, Promotion::Same)?;
    let alpha = c.args.opt_scalar(2)?.unwrap_or(Scalar::Int(1));
    let [a, b] = [input(&c.args, 0)?, input(&c.args, 1)?];
    compute(c, &k::RSUB, dtype, &[a, b, parameter_of(dtype, alpha)])
}

fn rsub_rows(a: &Args<'_, Meta>) -> Option<RowForm> {
    let dtype = common(&operands(a, &[0, 1]).ok()?, Promotion::Same).ok()?;
    let alpha = f32::from_scalar(a.opt_scalar(2).ok()?.unwrap_or(Scalar::Int(1)));
    row_form_with(a, dtype, &[0, 1], &[alpha], &k::RSUB)
}

/// The rounding of `div`, from its last argument.
fn rounding<V>(a: &Args<'_, V>) -> Result<(Promotion, &'static Pointwise)> {
    match a.opt_str(2)? {
        None => Ok((Promotion::Float, &k::DIV)),
        Some("trunc") => Ok((Promotion::NoBool, &k::DIV_TRUNC)),
        Some("floor") => Ok((Promotion::NoBool, &k::DIV_FLOOR)),
        Some(other) => Err(OpError::new(format!(
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{other}'"
        ))),
    }
}
fn infer_div_mode(a: &Args<'_, Meta>) -> Metas {
    let (rule, op) = rounding(a)?;
    infer(a, &[0, 1], &[], rule, op)
}
fn run_div_mode(c: &Call<'_>) -> Result<()> {
    let (rule, op) = rounding(&c.args)?;
    let dtype = common(&operands(&c.args, &[0, 1])?, rule)?;
    let divisor = factor(&c.args, 1, dtype)?;
    let of_elements = matches!(divisor, Input::View(_)) && c.args.opt_str(2)? == Some("trunc");
    let op = match dtype {
        F16 if of_elements => &k::DIV_TRUNC_F16,
        BF16 if of_elements => &k::DIV_TRUNC_BF16,
        _ => op,
    };
    compute(c, op, dtype, &[input(&c.args, 0)?, divisor])
}

fn run_next_after(c: &Call<'_>) -> Result<()> {
    let dtype = common(&operands(&c.args, &[0, 1])?, Promotion::Same)?;
    let op = match dtype {
        F16 => &k::NEXTAFTER_F16,
        BF16 => &k::NEXTAFTER_BF16,
        _ => &k::NEXTAFTER,
    };
    compute(c, op, dtype, &inputs(&c.args, &[0, 1])?)
}

/// Shape rule of `addcmul` and `addcdiv`.
fn infer_addc(a: &Args<'_, Meta>, divides: bool) -> Metas {
    let operands = operands(a, &[0, 1, 2])?;
    let dtype = common(&operands, Promotion::Same)?;
    let whole = |o: &Operand<'_>| !o.dtype().is_float() && !o.dtype().is_complex();
    ensure!(
        !divides || !whole(&operands[1]) || !whole(&operands[2]),
        "Integer division with addcdiv is no longer supported, and in a future release addcdiv will perform a true division of tensor1 and tensor2."
    );
    let op = if divides { &k::ADDCDIV } else { &k::ADDCMUL };
    if !divides && dtype == Bool {
        return crate::pointwise::not_for(dtype);
    }
    crate::support::promote::check_holds(dtype, a.opt_scalar(3)?.unwrap_or(Scalar::Int(1)))?;
    infer(a, &[0, 1, 2], &[], Promotion::Same, op)
}
fn run_addc(c: &Call<'_>, op: &Pointwise) -> Result<()> {
    let dtype = common(&operands(&c.args, &[0, 1, 2])?, Promotion::Same)?;
    let mut all = inputs(&c.args, &[0, 1, 2])?;
    all.push(Input::Parameter(c.args.opt_scalar(3)?.unwrap_or(Scalar::Int(1))));
    compute(c, op, dtype, &all)
}

fn addc_rows(a: &Args<'_, Meta>, op: &Pointwise) -> Option<RowForm> {
    let dtype = common(&operands(a, &[0, 1, 2]).ok()?, Promotion::Same).ok()?;
    let value = f32::from_scalar(a.opt_scalar(3).ok()?.unwrap_or(Scalar::Int(1)));
    row_form_with(a, dtype, &[0, 1, 2], &[value], op)
}

/// `lerp` requires operands of one element type.
fn infer_lerp(a: &Args<'_, Meta>) -> Metas {
    let (x, y) = (a.tensor(0)?, a.tensor(1)?);
    let weight = a.tensor(2).ok().map(|w| w.dtype);
    if x.dtype != y.dtype || weight.is_some_and(|w| w != x.dtype) {
        return Err(OpError::new(format!(
            "expected dtype {} for `end` and `weight` but got dtype {}",
            crate::support::promote::name(x.dtype),
            crate::support::promote::name(if x.dtype != y.dtype { y.dtype } else { weight.unwrap_or(y.dtype) })
        )));
    }
    let at: &[usize] = if weight.is_some() { &[0, 1, 2] } else { &[0, 1] };
    infer(a, at, &[], Promotion::Same, &k::LERP)
}
fn lerp_rows(a: &Args<'_, Meta>) -> Option<RowForm> {
    match a.as_tensor(2) {
        Some(_) => row_form(a, &[0, 1, 2], &[], Promotion::Same, &k::LERP),
        None => row_form(a, &[0, 1], &[2], Promotion::Same, &k::LERP),
    }
}
fn run_lerp(c: &Call<'_>) -> Result<()> {
    let weight = match c.args.as_tensor(2) {
        Some(w) => Input::View(*w),
        None => Input::Parameter(c.args.scalar(2)?),
    };
    compute(c, &k::LERP, c.outs[0].dtype(), &[input(&c.args, 0)?, input(&c.args, 1)?, weight])
}

/// `isclose` compares in the operands' own element type.
fn infer_isclose(a: &Args<'_, Meta>) -> Metas {
    let (x, y) = (a.tensor(0)?, a.tensor(1)?);
    ensure!(
        x.dtype == y.dtype,
        "{} did not match {}",
        crate::support::promote::name(x.dtype),
        crate::support::promote::name(y.dtype)
    );
    crate::pointwise::infer_ask(a, &[0, 1], &k::EQ)
}
fn run_isclose(c: &Call<'_>) -> Result<()> {
    let mut all = inputs(&c.args, &[0, 1])?;
    all.push(Input::Parameter(Scalar::Float(c.args.opt_float(2)?.unwrap_or(1e-5))));
    all.push(Input::Parameter(Scalar::Float(c.args.opt_float(3)?.unwrap_or(1e-8))));
    all.push(Input::Parameter(Scalar::Int(c.args.opt_bool(4)?.unwrap_or(false) as i64)));
    let dtype = c.args.tensor(0)?.dtype();
    k::decide(&k::IS_CLOSE, dtype, &all, &c.outs[0], c.ctx.threads).map_err(|e| OpError::new(e.to_string()))
}

/// Declares an operator as `op!` does, whose second operand is a factor or divisor.
macro_rules! by_factor {
    ($schema:literal, $rule:ident, $f:expr, $samples:expr) => {
        OpDef {
            kernel: restride_ir::Kernel::Fixed(|c| run_by_factor(c, Promotion::$rule, &$f)),
            ..op!($schema, $rule(0, 1), $f, $samples)
        }
    };
}
macro_rules! scaled_op {
    ($schema:literal, $infer:path, $run:path, $samples:expr) => {
        own!($schema, $infer, $run, (0, 1), $samples)
    };
}

pub(crate) static OPS: &[OpDef] = table![
    scaled_op!("add.Tensor", infer_scaled, run_add, || scaled(ALL)).in_rows(|a, _| scaled_rows(
        a,
        &k::ADD,
        &k::ADD_SCALED
    )),
    scaled_op!("add.Scalar", infer_scaled, run_add, || { scaled_number(ALL) }).in_rows(|a, _| scaled_rows(
        a,
        &k::ADD,
        &k::ADD_SCALED
    )),
    scaled_op!("sub.Tensor", infer_sub, run_sub, || { scaled(NUMBERS) }).in_rows(|a, _| scaled_rows(
        a,
        &k::SUB,
        &k::SUB_SCALED
    )),
    scaled_op!("sub.Scalar", infer_sub, run_sub, || { scaled_number(NUMBERS) }).in_rows(|a, _| scaled_rows(
        a,
        &k::SUB,
        &k::SUB_SCALED
    )),
    scaled_op!("rsub.Tensor", infer_rsub, run_rsub, || tensors(scaled(NUMBERS))).in_rows(|a, _| rsub_rows(a)),
    scaled_op!("rsub.Scalar", infer_rsub, run_rsub, || { scaled_number(NUMBERS) }).in_rows(|a, _| rsub_rows(a)),
    by_factor!("mul.Tensor", Same, k::MUL, || binary_mixed(ALL)),
    by_factor!("mul.Scalar", Same, k::MUL, || with_number(ALL)),
    by_factor!("div.Tensor", Float, k::DIV, || divisions(NUMBERS)),
    by_factor!("div.Scalar", Float, k::DIV, || with_number(NUMBERS)),
    own!("div.Tensor_mode", infer_div_mode, run_div_mode, (0, 1), || with_mode(divisions(NO_BOOL))).checking(),
    own!("div.Scalar_mode", infer_div_mode, run_div_mode, (0, 1), || with_mode(with_number(NO_BOOL))),
    by_factor!("floor_divide", NoBool, k::DIV_FLOOR, || divisions(NO_BOOL)).graded(Grad::Zero),
    by_factor!("floor_divide.Scalar", NoBool, k::DIV_FLOOR, || with_number(NO_BOOL)).graded(Grad::Zero),
    op!("remainder.Tensor", NoBool(0, 1), k::REMAINDER, || tensors(divisions(NO_BOOL))),
    op!("remainder.Scalar", NoBool(0, 1), k::REMAINDER, || with_number(NO_BOOL)),
    op!("remainder.Scalar_Tensor", NoBool(0, 1), k::REMAINDER, || { number_first(REAL) }),
    op!("fmod.Tensor", NoBool(0, 1), k::FMOD, || tensors(tensors(divisions(NO_BOOL)))),
    op!("fmod.Scalar", NoBool(0, 1), k::FMOD, || with_number(NO_BOOL)),
    op!("atan2", Float(0, 1), k::ATAN2, || binary(ALL_REAL)),
    op!("hypot", Same(0, 1), k::HYPOT, || binary(REAL)),
    op!("copysign.Tensor", Float(0, 1), k::COPYSIGN, || binary(ALL_REAL)),
    op!("copysign.Scalar", Float(0, 1), k::COPYSIGN, || with_number(ALL_REAL)),
    own!("nextafter", |a| infer(a, &[0, 1], &[], Promotion::Same, &k::NEXTAFTER), run_next_after, (0, 1), s_next_after),
    op!("logaddexp", Float(0, 1), k::LOGADDEXP, s_logaddexp),
    op!("logaddexp2", Float(0, 1), k::LOGADDEXP2, || binary(REAL)),
    op!("xlogy.Tensor", Float(0, 1), k::XLOGY, || binary(NO_BOOL)),
    op!("xlogy.Scalar_Other", Float(0, 1), k::XLOGY, || with_number(NO_BOOL)),
    op!("xlogy.Scalar_Self", Float(0, 1), k::XLOGY, || number_first(REAL)),
    op!("special_xlog1py", Float(0, 1), k::XLOG1PY, || binary(NO_BOOL)),
    own!("heaviside", infer_heaviside, run_heaviside, (0, 1), s_heaviside).graded(Grad::Zero),
    op!("maximum", Same(0, 1), k::MAXIMUM, || comparisons_of(ALL_REAL)),
    op!("minimum", Same(0, 1), k::MINIMUM, || comparisons_of(ALL_REAL)),
    op!("fmax", Same(0, 1), k::FMAX, || comparisons_of(ALL_REAL)),
    op!("fmin", Same(0, 1), k::FMIN, || comparisons_of(ALL_REAL)),
    op!("gcd", NoBool(0, 1), k::GCD, || binary(INTS)),
    op!("lcm", NoBool(0, 1), k::LCM, || binary(INTS)),
    own!("addcmul", |a| infer_addc(a, false), |c| run_addc(c, &k::ADDCMUL), (0, 1, 2), || triples(true))
        .in_rows(|a, _| addc_rows(a, &k::ADDCMUL)),
    own!("addcdiv", |a| infer_addc(a, true), |c| run_addc(c, &k::ADDCDIV), (0, 1, 2), || triples(false))
        .in_rows(|a, _| addc_rows(a, &k::ADDCDIV)),
    own!("lerp.Scalar", infer_lerp, run_lerp, (0, 1), || lerps(true)).in_rows(|a, _| lerp_rows(a)),
    own!("lerp.Tensor", infer_lerp, run_lerp, (0, 1, 2), || lerps(false)).in_rows(|a, _| lerp_rows(a)),
    own!("isclose", infer_isclose, run_isclose, (), closeness),
];

/// `heaviside` requires operands of one element type.
fn infer_heaviside(a: &Args<'_, Meta>) -> Metas {
    ensure!(
        a.tensor(0)?.dtype == a.tensor(1)?.dtype,
        "heaviside is not yet implemented for tensors with different dtypes."
    );
    infer(a, &[0, 1], &[], Promotion::Same, &k::HEAVISIDE)
}
fn run_heaviside(c: &Call<'_>) -> Result<()> {
    run(c, &[0, 1], &[], Promotion::Same, &k::HEAVISIDE)
}

#[cfg(feature = "samples")]
pub(crate) mod samples {
    use super::*;
    pub(super) use crate::pointwise::samples::*;
    pub(super) use crate::support::samples::*;

    /// Sample calls with `alpha`.
    pub(crate) fn scaled(types: Types) -> Vec<Sample> {
        let mut out = binary_mixed(types);
        out.push(sample![tensor(F32, &[2, 3], 1), tensor(F32, &[3], 2), 0.5]);
        out.push(sample![tensor(I64, &[2, 3], 1), tensor(I64, &[3], 2), 3]);
        out.push(sample![tensor(F16, &[2, 3], 1), tensor(I64, &[3], 2), 2]);
        out.push(sample![tensor(C64, &[2, 3], 1), tensor(C64, &[3], 2), complex(0.5, 2.0)]);
        out.push(sample![tensor(F32, &[2, 3], 1), tensor(C64, &[3], 2), complex(0.5, 2.0)]);
        out
    }

    pub(crate) fn scaled_number(types: Types) -> Vec<Sample> {
        let mut out = with_number(types);
        out.push(sample![tensor(F32, &[2, 3], 1), 2.0, 0.5]);
        out.push(sample![tensor(I64, &[2, 3], 1), 2, 3]);
        out
    }

    pub(crate) fn with_mode(samples: Vec<Sample>) -> Vec<Sample> {
        let mut out = Vec::new();
        for mode in ["floor", "trunc"] {
            out.extend(samples.iter().cloned().map(|mut s| {
                s.args.push(crate::support::samples::IntoArg::arg(mode));
                s
            }));
        }
        out.extend(samples.into_iter().take(3).map(|mut s| {
            s.args.push(restride_ir::Arg::None);
            s
        }));
        out
    }

    /// Sample divisors of both signs, and zero for floats.
    pub(crate) fn divisions(types: Types) -> Vec<Sample> {
        let mut out = binary_mixed(types);
        let (a, b): (Vec<i64>, Vec<i64>) = (-4..5).flat_map(|a| [-3, -1, 2].map(|b| (a, b))).unzip();
        out.push(sample![crate::support::samples::ints(&a, &[27]), crate::support::samples::ints(&b, &[27])]);
        let (a, b): (Vec<f32>, Vec<f32>) =
            (-4..5).flat_map(|a| [-3.5f32, -1.0, 0.0, 2.25].map(|b| (a as f32 * 1.5, b))).unzip();
        out.push(sample![
            restride_tensor::RawTensor::from_slice(&a, &[36]),
            restride_tensor::RawTensor::from_slice(&b, &[36])
        ]);
        // Quotients near whole numbers.
        for d in [F16, BF16] {
            let vector = |seed, to: f64| in_range(d, Layout::contiguous(&[400]), seed, -to, to);
            out.push(sample![vector(1, 10.0), vector(2, 1.0)]);
        }
        out
    }

    pub(crate) fn triples(ints: bool) -> Vec<Sample> {
        let three = |d: DType| {
            let one = |seed| in_range(d, Layout::contiguous(&[2, 3]), seed, 1.0, 4.0);
            [one(1), one(2), one(3)]
        };
        let mut out = Vec::new();
        for d in [F32, F64, F16, BF16, C64] {
            let [a, b, c] = three(d);
            out.push(sample![&a, &b, &c]);
            out.push(sample![a, b, c, 0.5]);
        }
        let [a, b, c] = three(C64);
        out.push(sample![a, b, c, complex(0.5, 2.0)]);
        if ints {
            let [a, b, c] = three(I64);
            out.push(sample![a, b, c, 3]);
        }
        out.push(sample![
            transposed(F32, &[2, 3], 1),
            tensor(F32, &[3], 2),
            in_range(F32, Layout::contiguous(&[]), 3, 1.0, 2.0),
            2.0
        ]);
        out.push(sample![tensor(F32, &[0, 3], 1), tensor(F32, &[3], 2), tensor(F32, &[3], 3)]);
        out
    }

    pub(crate) fn lerps(number: bool) -> Vec<Sample> {
        let mut out = Vec::new();
        for d in [F32, F64, F16, BF16] {
            let (a, b) = (transposed(d, &[2, 3], 1), tensor(d, &[2, 3], 2));
            if number {
                out.push(sample![&a, &b, 0.3]);
                out.push(sample![a, b, 0.9]);
            } else {
                out.push(sample![&a, &b, in_range(d, Layout::contiguous(&[3]), 3, 0.0, 1.0)]);
            }
        }
        if number {
            out.push(sample![tensor(C64, &[2, 3], 1), tensor(C64, &[2, 3], 2), complex(0.25, 1.0)]);
        }
        out
    }

    pub(crate) fn closeness() -> Vec<Sample> {
        let a = [1.0f32, 1.000001, f32::NAN, f32::INFINITY, 0.0, 2.0];
        let b = [1.0f32, 1.0, f32::NAN, f32::INFINITY, 1e-9, 2.1];
        let (a, b) =
            (restride_tensor::RawTensor::from_slice(&a, &[6]), restride_tensor::RawTensor::from_slice(&b, &[6]));
        vec![
            sample![&a, &b],
            sample![&a, &b, 1e-5, 1e-8, true],
            sample![a, b, 0.1],
            sample![tensor(I64, &[5], 1), tensor(I64, &[5], 1)],
        ]
    }

    pub(crate) fn comparisons_of(types: Types) -> Vec<Sample> {
        tensors(comparisons(types))
    }

    pub(crate) fn s_logaddexp() -> Samples {
        let mut out = binary(REAL);
        out.push(sample![tensor(C64, &[2, 3], 1), tensor(C64, &[3], 2)]);
        out
    }

    pub(crate) fn s_next_after() -> Samples {
        let mut out = Vec::new();
        for d in [F32, F64, F16, BF16] {
            out.push(sample![tensor(d, &[5], 1), tensor(d, &[5], 2)]);
            // Subnormal neighbours, equal numbers, and powers of two.
            out.push(sample![in_range(d, Layout::contiguous(&[9]), 3, -2e-7, 2e-7), tensor(d, &[9], 2)]);
            out.push(sample![in_range(d, Layout::contiguous(&[9]), 4, -7e-5, 7e-5), tensor(d, &[], 2)]);
            // The last is infinite in all types but doubles.
            for (x, to) in [(2.0, 2.0), (2.0, -9.0), (0.0, -1.0), (65504.0, 1e6), (1e39, 1.0), (-1e39, 1.0)] {
                let all = |x: f64| in_range(d, Layout::contiguous(&[3]), 1, x, x);
                out.push(sample![all(x), all(to)]);
            }
        }
        out
    }

    pub(crate) fn s_heaviside() -> Samples {
        vec![
            sample![tensor(F32, &[2, 3], 1), tensor(F32, &[3], 2)],
            sample![tensor(I64, &[6], 1), tensor(I64, &[6], 2)],
        ]
    }
}
