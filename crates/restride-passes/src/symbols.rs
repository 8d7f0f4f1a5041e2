//! Symbols: a witness for each, and programs with symbols replaced by numbers.

use restride_ir::{Binding, CollectTree, Conditions, Expr, Program, Scalar, size_apart};

/// A value for every symbol that passes the program's checks and is unlikely to equal one of its constants.
pub fn witness(program: &Program) -> Binding {
    let wanted = program
        .symbols
        .values()
        .enumerate()
        .map(|(i, s)| {
            let value = size_apart(i).clamp(s.min().unwrap_or(i64::MIN), s.max().unwrap_or(i64::MAX));
            let value = if s.is_float() { Scalar::Float(value as f64) } else { Scalar::Int(value) };
            (s.clone(), value)
        })
        .collect_map();
    Conditions::of(program).witness(wanted, &[])
}

/// The program with symbols replaced by their values, wherever the binding has one.
pub fn specialize(program: &Program, binding: &Binding) -> Program {
    let mut out = program.clone();
    let ids: Vec<_> = out.graphs.ids().collect();
    for id in ids {
        out.graphs[id].substitute(binding);
    }
    for spec in &mut out.signature.outputs {
        if let Some(alias) = &mut spec.alias {
            alias.layout = alias.layout.map(|e| e.substitute(binding));
        }
    }
    out.symbols = std::mem::take(&mut out.symbols).into_iter().filter(|(_, s)| !binding.contains_key(s)).collect_map();
    out.guards.iter_mut().for_each(|g| g.condition = g.condition.substitute(binding));
    out.guards.retain(|g| g.condition != Expr::Bool(true));
    for r in &mut out.ranges {
        r.0 = r.0.substitute(binding);
    }
    out
}
