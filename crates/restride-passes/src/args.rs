//! A call's arguments as shape and view rules read them: with types of operands in place of operands, and with symbolic
//! numbers, known numbers, or numbers at a witness.

use restride_ir::{
    Arg, Args, Binding, Error, Expr, Graph, Layout, Meta, Node, Result, Scalar, TensorType, ValueId, ViewOutcome,
    ViewRule,
};

/// A number as view rules read it: a known one as an integer.
pub(crate) fn view_number(e: &Expr) -> Expr {
    e.constant().map_or_else(|| e.clone(), |s| Expr::Int(s.as_view_number()))
}

/// Arguments for symbolic view rules, with operands' types from `ty`; `None` if a type is missing.
pub(crate) fn typed(args: &[Arg], ty: impl Fn(ValueId) -> Option<TensorType>) -> Option<Vec<Arg<TensorType, Expr>>> {
    Arg::try_map_all(args, |v| ty(*v).ok_or(()), |e| Ok(view_number(e))).ok()
}

/// The views that a rule makes of operands with types from `ty`, for all values of the symbols.
pub(crate) fn symbolic_views(
    rule: ViewRule,
    args: &[Arg],
    ty: impl Fn(ValueId) -> Option<TensorType>,
) -> Option<Vec<TensorType>> {
    match (rule.symbolic)(&Args(&typed(args, ty)?)) {
        Ok(ViewOutcome::Views(views)) => Some(views.into_vec()),
        _ => None,
    }
}

/// Arguments with known numbers and operands' types from `meta`; `None` if one is not known.
pub(crate) fn known(args: &[Arg], meta: impl Fn(ValueId) -> Option<Meta>) -> Option<Vec<Arg<Meta, Scalar>>> {
    Arg::try_map_all(args, |v| meta(*v).ok_or(()), |e| e.constant().ok_or(())).ok()
}

/// A node's arguments with known numbers and operands' types from `meta`.
///
/// # Errors
/// Those of `meta`, and a number that only a run knows.
pub(crate) fn known_or_refused(node: &Node, meta: impl Fn(ValueId) -> Result<Meta>) -> Result<Vec<Arg<Meta, Scalar>>> {
    let number = |e: &Expr| {
        e.constant().ok_or_else(|| Error::unsupported(format!("the number {e} is not known before the run")))
    };
    Arg::try_map_all(&node.args, |v| meta(*v), number)
}

/// Arguments at a witness; `None` if a size or number has no value at it.
pub(crate) fn at_witness(graph: &Graph, witness: &Binding, args: &[Arg]) -> Option<Vec<Arg<Meta, Scalar>>> {
    let tensor = |v: &ValueId| graph.values[*v].ty.tensor().and_then(|t| type_at(t, witness)).ok_or(());
    Arg::try_map_all(args, tensor, |e| e.eval(witness).map_err(|_| ())).ok()
}

/// A type at a witness.
pub(crate) fn type_at(ty: &TensorType, witness: &Binding) -> Option<Meta> {
    Some(Meta::new(ty.dtype, layout_at(&ty.layout, witness)?))
}

/// A layout at a witness.
pub(crate) fn layout_at(layout: &Layout<Expr>, witness: &Binding) -> Option<Layout> {
    layout.known().or_else(|| layout.map(|e| e.substitute(witness)).known())
}
