//! Types of results with symbolic sizes.
//!
//! Shape rules work on known sizes. With symbolic ones the rule is asked at several values of the symbols
//! (`symbolic_fit.rs`), and a size is the expression over the arguments' sizes and numbers that fits all of them. Where none
//! fits, that is an error. Sizes that a run puts in are checked against the rule again.

use crate::args::known;
use crate::symbolic_fit::Witnesses;
use restride_ir::{
    Arg, Args, Binding, Conditions, Expr, Layout, Meta, Op, OpError, Scalar, TensorType, ValueId, ViewOutcome,
};
use restride_ops::types as types_of;
use restride_tensor::by_stride;

type Result<T> = std::result::Result<T, OpError>;

/// Types of a call's results, by the operator's own rules.
///
/// # Errors
/// PyTorch refuses the call, the operator has no shape rule, or a size is no expression over the arguments' sizes.
pub fn result_types(
    op: Op,
    args: &[Arg],
    conditions: &Conditions,
    ty: impl Fn(ValueId) -> TensorType,
) -> Result<Vec<TensorType>> {
    result_types_near(op, args, conditions, &[], ty)
}

/// As [`result_types`]; a size may also be one of the types `near`: those of the call that this one stands for or differentiates.
pub(crate) fn result_types_near(
    op: Op,
    args: &[Arg],
    conditions: &Conditions,
    near: &[TensorType],
    ty: impl Fn(ValueId) -> TensorType,
) -> Result<Vec<TensorType>> {
    let typed: Vec<Arg<TensorType, Expr>> = args.iter().map(|a| a.map_values(|v| ty(*v))).collect();
    if let Some(known) = known(args, |v| ty(v).known()) {
        return Ok(types_of(op, &known)?.into_iter().map(TensorType::from).collect());
    }
    // View rules read flags as numbers.
    let flag = |e: &Expr| match e {
        Expr::Bool(b) => Expr::Int(i64::from(*b)),
        e => e.clone(),
    };
    if let Some(rule) = op.def().view {
        let numbers: Result<Vec<Arg<TensorType, Expr>>> =
            typed.iter().map(|a| a.try_map(|t| Ok(t.clone()), |e| Ok(flag(e)))).collect();
        if let ViewOutcome::Views(types) = (rule.symbolic)(&Args(&numbers?))? {
            return Ok(types.into_vec());
        }
    }
    symbolic(op, &typed, conditions, near)
}

fn symbolic(
    op: Op,
    typed: &[Arg<TensorType, Expr>],
    conditions: &Conditions,
    near: &[TensorType],
) -> Result<Vec<TensorType>> {
    let types: Vec<TensorType> = typed.iter().flat_map(Arg::values).cloned().collect();
    let all = [&types, near].concat();
    let mut witnesses = Witnesses::new(&all, typed.iter().flat_map(Arg::scalars), conditions);
    let known = |a: &Arg<TensorType, Expr>, b: &Binding| {
        a.try_map(|t| Ok(at(t, b)?.known().expect("all symbols are bound")), |e| e.eval(b).map_err(OpError::new))
    };
    let made = witnesses.try_each(|b| types_of(op, &typed.iter().map(|a| known(a, b)).collect::<Result<Vec<_>>>()?))?;
    let dim = |d: usize, all: Vec<i64>| -> Result<Expr> {
        let numbers: Vec<Scalar> = all.iter().copied().map(Scalar::Int).collect();
        let found = witnesses.expression(&numbers).or_else(|| witnesses.assembled(&types, d, &all));
        found.ok_or_else(|| OpError::unsupported(format!("a size of a result of {op} is no expression of the symbols")))
    };
    let count = made[0].len();
    if made.iter().any(|m| m.len() != count) {
        return Err(OpError::unsupported(format!("the number of results of {op} depends on symbolic sizes")));
    }
    (0..count)
        .map(|k| {
            let each: Vec<&Meta> = made.iter().map(|m| &m[k]).collect();
            if each.iter().any(|m| m.rank() != each[0].rank() || m.dtype != each[0].dtype) {
                return Err(OpError::unsupported(format!("the rank of a result of {op} depends on symbolic sizes")));
            }
            let sizes = (0..each[0].rank())
                .map(|d| dim(d, each.iter().map(|m| m.layout.sizes[d]).collect()))
                .collect::<Result<Vec<_>>>()?;
            Ok(TensorType::new(each[0].dtype, strides(&sizes, &each[0].layout)))
        })
        .collect()
}

/// A type at a witness.
pub(crate) fn at(t: &TensorType, b: &Binding) -> Result<TensorType> {
    let known = TensorType::new(t.dtype, t.layout.map(|e| e.substitute(b)));
    match known.known() {
        Some(_) => Ok(known),
        None => Err(OpError::unsupported("a size that cannot be computed")),
    }
}

/// Dense strides in the order that they have at known sizes.
fn strides(sizes: &[Expr], known: &Layout) -> Layout<Expr> {
    if known.is_contiguous() {
        return Layout::contiguous(sizes);
    }
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    by_stride(&mut order, |d| known.strides[d]);
    Layout::permuted(sizes, &order)
}
