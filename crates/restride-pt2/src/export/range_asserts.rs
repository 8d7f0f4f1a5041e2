//! Assertions for the ranges of unbacked symbols.
//!
//! restride checks a symbol's range at the node that produces its value. PyTorch does not, so an exported file asserts the range,
//! as `torch.export` does, unless the program has the same check.

use super::graph::GraphWriter;
use super::symbolic;
use crate::model::{Argument, NamedArgument, NumberArgument, SymNumber};
use restride_ir::{Arg, Expr, ExprFn, Node, Result, Symbol, Type};
use std::collections::BTreeSet;

/// Whether the node asserts a constant truth, which a file leaves out.
pub fn holds(node: &Node) -> bool {
    node.op.name() == "aten._assert_scalar.default"
        && matches!(node.args.first(), Some(Arg::Scalar(e)) if e.constant().is_some_and(|c| c.as_bool()))
}

/// Asserts the ranges of the symbols that this node produces. Its results are declared already.
pub fn assert_learnt(w: &mut GraphWriter<'_>, node: &Node) -> Result<()> {
    for &r in &node.results {
        for (s, is_size) in named(&w.source.values[r].ty) {
            if !w.learnt.insert(s.clone()) || s.is_float() {
                continue;
            }
            // A size is never negative.
            let s = &s;
            let least = s.min().filter(|m| !is_size || *m > 0);
            for (f, sign, bound) in [(ExprFn::Ge, ">=", least), (ExprFn::Le, "<=", s.max())] {
                if let Some(bound) = bound.filter(|b| !recorded(w, s, f, *b)) {
                    assert_bound(w, s, f, sign, bound)?;
                }
            }
        }
    }
    Ok(())
}

/// The unbacked symbol that a check equates with an expression over input sizes, and that expression.
pub fn pinned(check: &Expr) -> Option<(Symbol, Expr)> {
    let Expr::Call(c) = check else { return None };
    let (ExprFn::Eq, [a, b]) = (c.0, c.1.as_slice()) else { return None };
    [(a, b), (b, a)].into_iter().find_map(|(number, size)| {
        let Expr::Sym(s) = number else { return None };
        let mut others = BTreeSet::new();
        size.symbols(&mut others);
        let backed = !others.is_empty() && !others.iter().any(Symbol::is_unbacked);
        (s.is_unbacked() && backed).then(|| (s.clone(), size.clone()))
    })
}

/// Whether the program has this check.
fn recorded(w: &GraphWriter<'_>, s: &Symbol, f: ExprFn, bound: i64) -> bool {
    w.checks.contains(&Expr::call(f, vec![Expr::Sym(s.clone()), Expr::Int(bound)]))
}

fn assert_bound(w: &mut GraphWriter<'_>, s: &Symbol, f: ExprFn, sign: &str, bound: i64) -> Result<()> {
    let argument = NamedArgument::positional;
    let number = w.number(&Expr::Sym(s.clone()))?.to_string();
    let python = if matches!(f, ExprFn::Ge) { "ge" } else { "le" };
    let name = w.fresh(python).to_string();
    let says = if w.pinned.contains_key(s) { SymNumber::AsBool(true) } else { symbolic::bound(s, f, bound) };
    w.out.sym_bool_values.insert(name.clone(), says);
    let verdict = || Argument::AsSymBool(NumberArgument::AsName(name.clone()));
    let inputs =
        vec![argument("a", Argument::AsSymInt(NumberArgument::AsName(number))), argument("b", Argument::AsInt(bound))];
    w.push(format!("_operator.{python}"), inputs, vec![verdict()], false);
    let says = format!("Runtime assertion failed for expression {} {sign} {bound} on node '{name}'", s.name());
    let inputs = vec![argument("self", verdict()), argument("assert_msg", Argument::AsString(says))];
    w.push("torch.ops.aten._assert_scalar.default".into(), inputs, Vec::new(), false);
    Ok(())
}

/// The unbacked symbols of a type: its value or its sizes. True for a size.
pub fn named(ty: &Type) -> Vec<(Symbol, bool)> {
    let one = |e: &Expr, is_size| match e {
        Expr::Sym(s) if s.is_unbacked() => Some((s.clone(), is_size)),
        _ => None,
    };
    match ty {
        Type::Tensor(t) => t.layout.sizes.iter().filter_map(|e| one(e, true)).collect(),
        Type::Scalar(e) => one(e, false).into_iter().collect(),
        _ => Vec::new(),
    }
}
