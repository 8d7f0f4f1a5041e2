//! Gradients of calls: the search for an operator's rule, its run, and the language in which rules are written.

mod operators;
pub(crate) use operators::pullback;
mod saved;
pub(crate) mod terms;
mod views;

use crate::registry::full_name;
use crate::support::ensure;
use restride_ir::{Arg, Dim, Expr, Grad, GradCall, GradEmit, OpDef, OpError, TensorType, Val};
use std::collections::HashMap;
use std::sync::OnceLock;

type Result<T> = std::result::Result<T, OpError>;

pub use saved::{KeptArg, SavedByPyTorch, kept};

/// Declared gradients: operators that share a rule, named as in declarations, and the rule.
pub type Rules = &'static [(&'static [&'static str], Grad)];

const NONE: &str = "PyTorch has none";
const RENORM: &str = "PyTorch has none: it replaces rows of a table outside of what is differentiated";
const ENDS: &str = "PyTorch has none: the ends are read as numbers";
const DRAWN: &str = "the derivative of gamma-distributed numbers by their shapes (`_standard_gamma_grad`) is missing";
const COUNTS: &str = "PyTorch has none: a count changes in steps";

/// Floating-point operators without a gradient, and the reason.
static WITHOUT: &[(&str, &str)] = &[
    ("aten._ctc_loss_backward.default", NONE),
    ("aten._linalg_eigvals.default", NONE),
    ("aten._fused_adam.default", NONE),
    ("aten._fused_adam.tensor_lr", NONE),
    ("aten._fused_adamw.default", NONE),
    ("aten._fused_adamw.tensor_lr", NONE),
    ("aten._fused_sgd.default", NONE),
    ("aten._fused_sgd.tensor_lr", NONE),
    ("aten._fused_adagrad.default", NONE),
    ("aten._fused_adagrad.tensor_lr", NONE),
    ("aten.geqrf.default", NONE),
    ("aten.linalg_ldl_factor_ex.default", NONE),
    ("aten.linalg_ldl_solve.default", NONE),
    ("aten.embedding_renorm.default", RENORM),
    ("aten._standard_gamma.default", DRAWN),
    ("aten._sample_dirichlet.default", DRAWN),
    ("aten.linspace.Tensor_Tensor", ENDS),
    ("aten.linspace.Tensor_Scalar", ENDS),
    ("aten.linspace.Scalar_Tensor", ENDS),
    ("aten.logspace.Tensor_Tensor", ENDS),
    ("aten.logspace.Tensor_Scalar", ENDS),
    ("aten.logspace.Scalar_Tensor", ENDS),
    ("aten.histogram.bin_ct", COUNTS),
    ("aten.histogram.bins_tensor", COUNTS),
    ("aten.histogramdd.default", COUNTS),
    ("aten.histogramdd.int_bins", COUNTS),
    ("aten.histogramdd.TensorList_bins", COUNTS),
    ("aten._histogramdd_bin_edges.default", COUNTS),
    ("aten._histogramdd_from_bin_cts.default", COUNTS),
    ("aten._histogramdd_from_bin_tensors.default", COUNTS),
];

/// PyTorch's gradient operators that are computed by a rule.
pub(crate) static FAMILY: crate::Family = crate::Family { ops: &[operators::OPS], gradients: &[], aliases: &[] };

/// The reason why an operator has no gradient, if one is declared.
pub fn without(name: &str) -> Option<&'static str> {
    WITHOUT.iter().find(|(of, _)| *of == name).map(|(_, why)| *why)
}

/// The gradient rules of all families, by the full names of their operators.
fn declared() -> &'static HashMap<String, Grad> {
    static RULES: OnceLock<HashMap<String, Grad>> = OnceLock::new();
    RULES.get_or_init(|| {
        let tables = crate::FAMILIES.iter().flat_map(|f| f.gradients).copied().flatten();
        tables.flat_map(|(names, grad)| names.iter().map(|n| (full_name(n), *grad))).collect()
    })
}

/// The gradient rule of an operator: of its declaration, of its family's table, from its view rule, or from its composition.
pub(crate) fn of(def: &OpDef, name: &str) -> Option<Grad> {
    let moves = matches!(def.movement, Some(restride_ir::Movement::View(_)));
    def.grad.or_else(|| declared().get(name).copied()).or((def.view.is_some() || moves).then_some(Grad::View)).or((def
        .decompose
        .is_some()
        && without(name).is_none())
    .then_some(Grad::Composed))
}

/// Gradients of a call's operands, each with its operand's sizes and element type; `None` is zero.
///
/// # Errors
/// The operator has no rule, or is composed and must be decomposed first, or its rule does not support the call.
pub fn gradients(emit: &mut dyn GradEmit, call: &GradCall<'_>) -> Result<Vec<Option<Val>>> {
    let found = match call.op.def().grad {
        Some(Grad::Zero) => return Ok(vec![None; call.needs.len()]),
        Some(Grad::Rule(rule)) => rule(emit, call)?,
        Some(Grad::View) => views::adjoint(emit, call)?,
        Some(Grad::Composed | Grad::Form(_)) => {
            return Err(OpError::new("a composed operator is taken apart before it is differentiated"));
        }
        None => {
            let why = without(call.op.name()).map_or(" yet".into(), |why| format!(": {why}"));
            return Err(OpError::new(format!("there is no gradient of {}{why}", call.op)));
        }
    };
    let operands: Vec<Val> = call.args.iter().flat_map(|a| a.values().copied()).collect();
    let mut out = Vec::with_capacity(found.len());
    for ((grad, operand), needs) in found.into_iter().zip(operands).zip(call.needs) {
        out.push(match grad {
            Some(g) if *needs => {
                let to = emit.ty(operand);
                Some(fit(emit, g, &to)?)
            }
            _ => None,
        });
    }
    Ok(out)
}

fn one(emit: &mut dyn GradEmit, op: &str, args: &[Arg<Val, Expr>]) -> Result<Val> {
    let made = emit.call(op, args)?;
    made.first().copied().ok_or_else(|| OpError::new(format!("{op} has no result")))
}

/// Converts a gradient to an operand's type: sums broadcast dimensions, takes the real part for a real operand, casts.
pub fn fit(emit: &mut dyn GradEmit, gradient: Val, to: &TensorType) -> Result<Val> {
    let mut g = gradient;
    if emit.ty(g).dtype.is_complex() && !to.dtype.is_complex() {
        let pairs = one(emit, "aten.view_as_real.default", &[Arg::Value(g)])?;
        let at = |i: i64| Arg::Scalar(Expr::Int(i));
        g = one(emit, "aten.select.int", &[Arg::Value(pairs), at(-1), at(0)])?;
    }
    let have = emit.ty(g);
    let wider = have.rank() as i64 - to.rank() as i64;
    ensure!(wider >= 0, "a gradient {have} of an operand {to}");
    let lead = (0..wider).collect::<Vec<i64>>();
    let spread = |(k, size): (usize, &Expr)| {
        let own = &have.layout.sizes[k + wider as usize];
        (size.is(1) && !own.is(1)).then_some(k as i64 + wider)
    };
    let ones: Vec<i64> = to.layout.sizes.iter().enumerate().filter_map(spread).collect();
    let list = |dims: &[i64]| Arg::Scalars(dims.iter().map(|d| Expr::Int(*d)).collect());
    if !lead.is_empty() || !ones.is_empty() {
        let all: Vec<i64> = lead.iter().chain(&ones).copied().collect();
        if ones.is_empty() {
            g = one(emit, "aten.sum.dim_IntList", &[Arg::Value(g), list(&all), Arg::Scalar(Expr::Bool(false))])?;
        } else {
            g = one(emit, "aten.sum.dim_IntList", &[Arg::Value(g), list(&all), Arg::Scalar(Expr::Bool(true))])?;
            if !lead.is_empty() {
                let sizes = Arg::Scalars(to.layout.sizes.to_vec());
                g = one(emit, "aten.reshape.default", &[Arg::Value(g), sizes])?;
            }
        }
    }
    let have = emit.ty(g);
    let fits = have.layout.sizes.iter().zip(&to.layout.sizes).all(|(a, b)| a.equals(b) != Some(false));
    ensure!(fits, "a gradient {have} of an operand {to}");
    if have.dtype != to.dtype {
        g = one(emit, "aten._to_copy.default", &[Arg::Value(g), Arg::DType(to.dtype)])?;
    }
    Ok(g)
}

/// The arguments of a call, for view rules.
fn view_args(emit: &dyn GradEmit, call: &GradCall<'_>) -> Result<Vec<Arg<TensorType, Expr>>> {
    call.args.iter().map(|a| a.try_map(|v| Ok(emit.ty(*v)), |e| Ok(e.clone()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::lookup;

    #[test]
    fn every_rule_is_of_one_operator() {
        let tables = || crate::FAMILIES.iter().flat_map(|f| f.gradients).copied().flatten();
        let names: Vec<&str> = tables().flat_map(|(names, _)| names.iter().copied()).collect();
        assert_eq!(declared().len(), names.len(), "an operator stands in two tables");
        for name in names {
            let op = lookup(&full_name(name)).unwrap_or_else(|| panic!("{name}"));
            assert!(op.def().grad.is_some(), "{name}");
        }
    }
}
