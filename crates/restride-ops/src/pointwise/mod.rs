//! Pointwise operators: arithmetic, functions of one number, comparisons, activations, and their declarations.

mod activation;
mod activation_grad;
mod arith;
mod bessel;
mod bits;
mod compare;
mod foreach;
mod grad;
mod loss_scale;
mod optimizer;
mod power;
mod quantize;
#[cfg(feature = "samples")]
pub(crate) mod samples;
mod special;
mod unary;

use crate::support::promote::{self, AsTensor, Operand, check_holds, result_type, to_float};
use crate::support::strides;
use restride_ir::{Args, Call, Layout, Meta, OpError, RowForm, RowMap, RowOperand, Scalar};
use restride_kernels::pointwise::{self as k, Input, Pointwise, Predicate};
use restride_kernels::support::convert::{Compute, Kind, round_scalar};
use restride_tensor::{DType, View};
use smallvec::{SmallVec, smallvec};

pub(crate) use crate::support::{Metas, Result};

/// How the compute type of an operator follows from the operands' types.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Promotion {
    /// `torch.result_type`.
    Same,
    /// `torch.result_type`; `bool` is refused.
    NoBool,
    /// `torch.result_type`; integers become the default float type.
    Float,
}

/// Reads the operands at some positions.
#[inline(always)] // a list that a call returns is copied more than once
pub(crate) fn operands<'a, T: AsTensor>(args: &Args<'a, T>, at: &[usize]) -> Result<SmallVec<[Operand<'a>; 3]>> {
    let mut out = SmallVec::new();
    for &i in at {
        out.push(Operand::read(args, i)?);
    }
    Ok(out)
}

/// The element type that an operator computes in.
pub(crate) fn common(operands: &[Operand<'_>], rule: Promotion) -> Result<DType> {
    let dtype = result_type(operands)?;
    match rule {
        Promotion::Float => Ok(to_float(dtype)),
        Promotion::NoBool if dtype == DType::Bool => not_for(dtype),
        _ => Ok(dtype),
    }
}

/// Refuses an element type with PyTorch's message.
pub(crate) fn not_for<T>(dtype: DType) -> Result<T> {
    Err(OpError::new(format!("not implemented for '{}'", promote::name(dtype))))
}

/// Layout of the result of some operands; plain numbers count as 0-d tensors. Of an operand of another type than `dtype`
/// PyTorch first makes a converted copy, whose strides count.
pub(crate) fn layout(operands: &[Operand<'_>], dtype: DType) -> Result<Layout> {
    let converted = |o: &Operand<'_>| match o {
        Operand::Tensor(own, l) if *own != dtype && l.rank() > 1 && !l.is_dense() => Some(strides::dense_like(l)),
        _ => None,
    };
    let copies: SmallVec<[Option<Layout>; 3]> = operands.iter().map(converted).collect();
    let number = Layout::contiguous(&[] as &[i64]);
    let layouts: SmallVec<[&Layout; 3]> = operands
        .iter()
        .zip(&copies)
        .map(|(o, copy)| match (o, copy) {
            (_, Some(copy)) => copy,
            (Operand::Tensor(_, l), None) => *l,
            (Operand::Number(_), None) => &number,
        })
        .collect();
    strides::pointwise(&layouts)
}

/// Shape rule of an operator that returns numbers.
pub(crate) fn infer(args: &Args<'_, Meta>, at: &[usize], params: &[usize], rule: Promotion, op: &Pointwise) -> Metas {
    let operands = operands(args, at)?;
    let dtype = common(&operands, rule)?;
    if !op.takes(Kind::of(dtype)) {
        return not_for(dtype);
    }
    for &p in params {
        check_holds(dtype, args.scalar(p)?)?;
    }
    Ok(smallvec![Meta::new(dtype, layout(&operands, dtype)?)])
}

/// Gives results the strides of `empty_like`, for operators that PyTorch computes without `TensorIterator`.
pub(crate) fn as_empty_like(a: &Args<'_, Meta>, out: Metas) -> Metas {
    let mut out = out?;
    out[0].layout = strides::dense_like(&a.tensor(0)?.layout);
    Ok(out)
}

/// Kernel of an operator that returns numbers. The operands at positions `at` decide the element type; `params` follow.
pub(crate) fn run(c: &Call<'_>, at: &[usize], params: &[usize], rule: Promotion, op: &Pointwise) -> Result<()> {
    let dtype = common(&operands(&c.args, at)?, rule)?;
    let mut inputs: SmallVec<[Input<'_>; 5]> = SmallVec::new();
    for &i in at {
        inputs.push(input(&c.args, i)?);
    }
    for &p in params {
        inputs.push(Input::Parameter(c.args.scalar(p)?));
    }
    compute(c, op, dtype, &inputs)
}

/// The row form of [`run`].
pub(crate) fn row_form(
    a: &Args<'_, Meta>,
    at: &[usize],
    params: &[usize],
    rule: Promotion,
    op: &Pointwise,
) -> Option<RowForm> {
    let mut given: SmallVec<[f32; 4]> = SmallVec::new();
    for &p in params {
        given.push(f32::from_scalar(a.scalar(p).ok()?));
    }
    let dtype = common(&operands(a, at).ok()?, rule).ok()?;
    row_form_with(a, dtype, at, &given, op)
}

/// The row form of a call that computes in `dtype`, with these parameters behind its operands.
pub(crate) fn row_form_with(
    a: &Args<'_, Meta>,
    dtype: DType,
    at: &[usize],
    params: &[f32],
    op: &Pointwise,
) -> Option<RowForm> {
    let row = op.f32.filter(|_| dtype == DType::F32)?;
    let mut operands = row_operands(a, at)?;
    operands.extend(params.iter().map(|p| RowOperand::Number(*p)));
    Some(RowForm::Map { map: RowMap { row, formula: op.formula }, operands })
}

/// Operands of a row form; those of other types are converted to singles.
pub(crate) fn row_operands(a: &Args<'_, Meta>, at: &[usize]) -> Option<SmallVec<[RowOperand; 4]>> {
    let mut operands = SmallVec::new();
    for &i in at {
        operands.push(match a.as_tensor(i) {
            Some(t) if t.dtype.is_complex() => return None,
            Some(_) => RowOperand::Tensor(u8::try_from(i).ok()?),
            None => RowOperand::Number(round_scalar(DType::F32, a.scalar(i).ok()?)),
        });
    }
    Some(operands)
}

/// The row form of [`run_ask`]: singles hold each `bool`.
pub(crate) fn row_form_ask(a: &Args<'_, Meta>, at: &[usize], op: &Predicate) -> Option<RowForm> {
    let dtype = result_type(&operands(a, at).ok()?).ok()?;
    let row = op.f32.filter(|_| matches!(dtype, DType::F32 | DType::Bool))?;
    Some(RowForm::Ask { row, formula: op.formula, operands: row_operands(a, at)? })
}

/// Computes the only result.
pub(crate) fn compute(c: &Call<'_>, op: &Pointwise, dtype: DType, inputs: &[Input<'_>]) -> Result<()> {
    k::compute(op, dtype, inputs, &c.outs[0], c.ctx.threads).map_err(|e| OpError::new(e.to_string()))
}

/// The operands at some positions, as kernel inputs.
#[inline(always)] // as `operands`
pub(crate) fn inputs<'a>(args: &Args<'a, View<'a>>, at: &[usize]) -> Result<SmallVec<[Input<'a>; 5]>> {
    let mut out = SmallVec::new();
    for &i in at {
        out.push(input(args, i)?);
    }
    Ok(out)
}

/// The operand at a position, as a kernel input.
pub(crate) fn input<'a>(args: &Args<'a, View<'a>>, i: usize) -> Result<Input<'a>> {
    match args.as_tensor(i) {
        Some(v) => Ok(Input::View(*v)),
        None => Ok(Input::Number(args.scalar(i)?)),
    }
}

/// The divisor or second factor of 16-bit floats: a number, or a tensor without dimensions of another type, keeps the precision of
/// singles (PyTorch's `mul_kernel` and `div_true_kernel`). As a summand, or as the first operand, it is rounded.
pub(crate) fn factor<'a>(args: &Args<'a, View<'a>>, i: usize, dtype: DType) -> Result<Input<'a>> {
    if crate::support::is_16_bit(dtype) {
        match args.as_tensor(i) {
            None => return Ok(Input::Parameter(args.scalar(i)?)),
            Some(t) if t.sizes().is_empty() && t.dtype() != dtype => return Ok(Input::Parameter(t.get(&[]))),
            Some(_) => {}
        }
    }
    input(args, i)
}

/// Kernel of `mul`, `div` and their like.
pub(crate) fn run_by_factor(c: &Call<'_>, rule: Promotion, op: &Pointwise) -> Result<()> {
    let dtype = common(&operands(&c.args, &[0, 1])?, rule)?;
    compute(c, op, dtype, &[input(&c.args, 0)?, factor(&c.args, 1, dtype)?])
}

/// A parameter that PyTorch reads in the element type, as `alpha`.
pub(crate) fn parameter_of<'a>(dtype: DType, value: Scalar) -> Input<'a> {
    if crate::support::is_16_bit(dtype) { Input::Number(value) } else { Input::Parameter(value) }
}

/// Shape rule of a predicate.
pub(crate) fn infer_ask(args: &Args<'_, Meta>, at: &[usize], op: &Predicate) -> Metas {
    let operands = operands(args, at)?;
    let dtype = result_type(&operands)?;
    if !op.takes(Kind::of(dtype)) {
        return not_for(dtype);
    }
    Ok(smallvec![Meta::new(DType::Bool, layout(&operands, dtype)?)])
}

/// Kernel of a predicate.
pub(crate) fn run_ask(c: &Call<'_>, at: &[usize], op: &Predicate) -> Result<()> {
    let dtype = result_type(&operands(&c.args, at)?)?;
    k::decide(op, dtype, &inputs(&c.args, at)?, &c.outs[0], c.ctx.threads).map_err(|e| OpError::new(e.to_string()))
}

/// Refuses an `alpha` that the element type cannot represent exactly.
pub(crate) fn check_alpha(dtype: DType, alpha: Scalar) -> Result<()> {
    let text = match alpha {
        Scalar::Bool(_) if dtype != DType::Bool => "Boolean alpha only supported for Boolean results.",
        Scalar::Float(_) if !dtype.is_float() && !dtype.is_complex() => {
            "For integral input tensors, argument alpha must not be a floating point number."
        }
        Scalar::Complex(_) if !dtype.is_complex() => {
            "For non-complex input tensors, argument alpha must not be a complex number."
        }
        _ => return Ok(()),
    };
    Err(OpError::new(text))
}

/// Licences for the result to take over any of the operands.
macro_rules! same_index {
    ($($x:literal),+) => {
        &[$(restride_ir::Reuse { arg: $x, result: 0, kind: restride_ir::ReuseKind::SameIndex }),+]
    };
}

/// Declares an operator that returns numbers: schema, rule with operand and (after `;`) parameter positions, function,
/// sample calls.
macro_rules! op {
    ($schema:literal, $rule:ident($($x:literal),+ $(; $($p:literal),+)?), $f:expr, $samples:expr) => {
        restride_ir::OpDef {
            infer: Some(|a| {
                $crate::pointwise::infer(a, &[$($x),+], &[$($($p),+)?], $crate::pointwise::Promotion::$rule, &$f)
            }),
            kernel: restride_ir::Kernel::Fixed(|c| {
                $crate::pointwise::run(c, &[$($x),+], &[$($($p),+)?], $crate::pointwise::Promotion::$rule, &$f)
            }),
            rows: Some(|a, _| {
                $crate::pointwise::row_form(a, &[$($x),+], &[$($($p),+)?], $crate::pointwise::Promotion::$rule, &$f)
            }),
            reuse: $crate::pointwise::same_index!($($x),+),
            pointwise: true,
            fails: if $f.check.is_some() { restride_ir::Fails::Integers } else { restride_ir::Fails::Never },
            samples: samples!($samples),
            ..restride_ir::OpDef::new($schema)
        }
    };
}

/// Declares an operator with its own functions: schema, shape rule, kernel, positions of tensors, sample calls.
macro_rules! own {
    ($schema:expr, $infer:expr, $kernel:expr, ($($x:literal),*), $samples:expr) => {
        restride_ir::OpDef {
            infer: Some($infer),
            kernel: restride_ir::Kernel::Fixed($kernel),
            reuse: &[$(restride_ir::Reuse { arg: $x, result: 0, kind: restride_ir::ReuseKind::SameIndex }),*],
            pointwise: true,
            samples: samples!($samples),
            ..restride_ir::OpDef::new($schema)
        }
    };
}

/// Declares a predicate: schema, positions of operands, function, sample calls.
macro_rules! ask {
    ($schema:literal, ($($x:literal),+), $f:expr, $samples:expr) => {
        restride_ir::OpDef {
            infer: Some(|a| $crate::pointwise::infer_ask(a, &[$($x),+], &$f)),
            kernel: restride_ir::Kernel::Fixed(|c| $crate::pointwise::run_ask(c, &[$($x),+], &$f)),
            rows: Some(|a, _| $crate::pointwise::row_form_ask(a, &[$($x),+], &$f)),
            reuse: $crate::pointwise::same_index!($($x),+),
            pointwise: true,
            exactness: restride_ir::Exactness::Exact,
            samples: samples!($samples),
            ..restride_ir::OpDef::new($schema)
        }
    };
}
pub(crate) use {ask, op, own, same_index};

/// Other names of PyTorch for operators of this family.
static ALIASES: &[(&str, &str)] = &[
    ("multiply", "mul"),
    ("subtract", "sub"),
    ("divide", "div"),
    ("true_divide", "div"),
    ("arctan2", "atan2"),
    ("max.other", "maximum"),
    ("min.other", "minimum"),
    ("special_xlogy", "xlogy.Tensor"),
    ("special_xlogy.other_scalar", "xlogy.Scalar_Other"),
    ("special_xlogy.self_scalar", "xlogy.Scalar_Self"),
    ("special_multigammaln", "mvlgamma"),
    ("__and__", "bitwise_and"),
    ("__or__", "bitwise_or"),
    ("__xor__", "bitwise_xor"),
    ("__lshift__.Tensor", "bitwise_left_shift.Tensor"),
    ("__lshift__.Scalar", "bitwise_left_shift.Tensor_Scalar"),
    ("__rshift__.Tensor", "bitwise_right_shift.Tensor"),
    ("__rshift__.Scalar", "bitwise_right_shift.Tensor_Scalar"),
    ("clip", "clamp"),
    ("not_equal", "ne"),
    ("less", "lt"),
    ("less_equal", "le"),
    ("greater", "gt"),
    ("greater_equal", "ge"),
    ("negative", "neg"),
    ("absolute", "abs"),
    ("fix", "trunc"),
    ("arccos", "acos"),
    ("arccosh", "acosh"),
    ("arcsin", "asin"),
    ("arcsinh", "asinh"),
    ("arctan", "atan"),
    ("arctanh", "atanh"),
    ("special_i0", "i0"),
    ("special_round", "round.decimals"),
    ("special_polygamma", "polygamma"),
    ("special_logit", "logit"),
    ("special_exp2", "exp2"),
    ("special_expm1", "expm1"),
    ("special_log1p", "log1p"),
    ("special_erf", "erf"),
    ("special_erfc", "erfc"),
    ("special_erfinv", "erfinv"),
    ("special_gammaln", "lgamma"),
    ("special_digamma", "digamma"),
    ("special_psi", "digamma"),
    ("special_expit", "sigmoid"),
    ("special_sinc", "sinc"),
];

/// The operators and gradients of this family.
pub(crate) static FAMILY: crate::Family = crate::Family {
    ops: &[
        arith::OPS,
        power::OPS,
        bits::OPS,
        unary::OPS,
        compare::OPS,
        activation::OPS,
        special::OPS,
        bessel::OPS,
        bessel::POLYNOMIALS,
        quantize::OPS,
        foreach::OPS,
        optimizer::OPS,
        loss_scale::OPS,
    ],
    gradients: &[grad::GRADS, activation_grad::GRADS, bessel::GRADS],
    aliases: ALIASES,
};
