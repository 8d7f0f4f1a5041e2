//! Ranges of numbers that are learnt from data, asserted where they are learnt.
//!
//! An assertion that the file's range of a symbol already implies is read as a true one: restride itself checks the range
//! wherever the symbol is learnt. PyTorch does not, so a file says it again, as `torch.export` does.

use super::exprs;
use super::graph::GraphWriter;
use crate::model::{Argument, ArgumentKind, NamedArgument, SymBoolArgument, SymIntArgument};
use crate::sympy::SymFn;
use restride_ir::{Arg, Expr, Node, Result, Symbol, Type};

/// Whether the node asserts what is known to be true: it has nothing to say in a file.
pub fn holds(node: &Node) -> bool {
    node.op.name() == "aten._assert_scalar.default"
        && matches!(node.args.first(), Some(Arg::Scalar(e)) if e.constant().is_some_and(|c| c.as_bool()))
}

/// Writes what holds of the symbols that are learnt at this node. Its results are declared.
pub fn assert_learnt(w: &mut GraphWriter<'_>, node: &Node) -> Result<()> {
    for &r in &node.results {
        for (s, is_size) in named(&w.source.values[r].ty) {
            if !w.learnt.insert(s.clone()) || s.is_float() {
                continue;
            }
            // A size is never negative.
            let s = &s;
            let least = s.min().filter(|m| !is_size || *m > 0);
            for (f, sign, bound) in [(SymFn::Ge, ">=", least), (SymFn::Le, "<=", s.max())] {
                if let Some(bound) = bound {
                    assert_bound(w, s, f, sign, bound)?;
                }
            }
        }
    }
    Ok(())
}

fn assert_bound(w: &mut GraphWriter<'_>, s: &Symbol, f: SymFn, sign: &str, bound: i64) -> Result<()> {
    let argument = |name: &str, arg| NamedArgument { name: name.into(), arg, kind: Some(ArgumentKind::Positional) };
    let number = w.number(&Expr::Sym(s.clone()))?.to_string();
    let python = if matches!(f, SymFn::Ge) { "ge" } else { "le" };
    let name = w.fresh(python).to_string();
    w.out.sym_bool_values.insert(name.clone(), exprs::bound(s, f, bound));
    let verdict = || Argument::AsSymBool(SymBoolArgument::AsName(name.clone()));
    let inputs =
        vec![argument("a", Argument::AsSymInt(SymIntArgument::AsName(number))), argument("b", Argument::AsInt(bound))];
    w.push(format!("_operator.{python}"), inputs, vec![verdict()], false);
    let says = format!("Runtime assertion failed for expression {} {sign} {bound} on node '{name}'", s.name());
    let inputs = vec![argument("self", verdict()), argument("assert_msg", Argument::AsString(says))];
    w.push("torch.ops.aten._assert_scalar.default".into(), inputs, Vec::new(), false);
    Ok(())
}

/// The symbols of data that a value of this type is or has as a size, and whether as a size.
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
