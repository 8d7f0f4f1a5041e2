//! Symbols: a witness for each, and programs with symbols replaced by numbers.

use restride_ir::{Binding, CollectTree, Conditions, Expr, Program, Scalar, Symbol, size_apart};
use std::collections::{BTreeMap, BTreeSet};

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
    let mut out = with_numbers(program, |e| e.substitute(binding));
    out.symbols = std::mem::take(&mut out.symbols).into_iter().filter(|(_, s)| !binding.contains_key(s)).collect_map();
    out.guards.retain(|g| g.condition != Expr::Bool(true));
    out
}

/// The program with other numbers, wherever they depend on symbols.
fn with_numbers(program: &Program, of: impl Fn(&Expr) -> Expr) -> Program {
    let mut out = program.clone();
    let ids: Vec<_> = out.graphs.ids().collect();
    ids.into_iter().for_each(|id| out.graphs[id].map_numbers(&of));
    for alias in out.signature.outputs.iter_mut().filter_map(|spec| spec.alias.as_mut()) {
        alias.layout = alias.layout.map(&of);
    }
    out.guards.iter_mut().for_each(|g| g.condition = of(&g.condition));
    out.ranges.iter_mut().for_each(|r| r.0 = of(&r.0));
    out
}

/// The symbols that are sizes of inputs and may be 0 or 1, though not with these sizes.
pub fn possible_units(program: &Program, sizes: &Binding) -> Vec<Symbol> {
    let graph = program.graph();
    let types = graph.inputs.iter().filter_map(|v| graph.values[*v].ty.tensor());
    let lone = types.flat_map(|t| &t.layout.sizes).filter_map(|e| if let Expr::Sym(s) = e { Some(s) } else { None });
    let of_two = |s: &&Symbol| sizes.get(*s).is_none_or(|n| n.as_i64() >= 2) && Symbol::max(s).is_none_or(|m| m >= 2);
    let found: BTreeSet<_> =
        lone.filter(|s| Symbol::min(s).is_none_or(|m| m < 2)).filter(of_two).cloned().collect_set();
    found.into_iter().collect()
}

/// The program for sizes of at least 2: these symbols have that minimum.
pub fn at_least_two(program: &Program, symbols: &[Symbol]) -> Program {
    let raised: BTreeMap<_, _> =
        symbols.iter().map(|s| (s.clone(), Expr::Sym(Symbol::new(s.name(), Some(2), Symbol::max(s))))).collect_map();
    let mut out = with_numbers(program, |e| e.replace(&raised));
    for s in out.symbols.values_mut() {
        if let Some(Expr::Sym(of_two)) = raised.get(s) {
            *s = of_two.clone();
        }
    }
    out
}
