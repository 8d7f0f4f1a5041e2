//! Verifier of the IR's rules, on which all passes rely: ids in range, definitions before uses, arguments that fit schemas,
//! a signature that fits the graph, and types by the operators' own rules. Linear in the program, but for sorting.

mod args;
mod higher_order;
mod types;

pub use types::{relay, relay_units, squeezed_help};

use crate::effects::callees_first;
use crate::{
    AliasRoot, Arg, Error, Expr, Graph, GraphId, Id, InputKind, OutputAlias, OutputKind, Program, Result, Stage,
    TensorType, Type, ValueId,
};
use restride_tensor::{Dim, Layout};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// Verifies a program and the types of its results: with known sizes, element types and sizes (and strides, in an imported
/// program) equal those of the operator's rule.
pub fn verify(program: &Program) -> Result<()> {
    verify_form(program)?;
    for id in callees_first(program)? {
        types::check(program, &program.graphs[id])?;
    }
    Ok(())
}

/// Verifies the types of the main graph's values, where they are known: sizes that a run learnt from data may not fit.
pub fn verify_types(program: &Program) -> Result<()> {
    types::check(program, program.graph())
}

/// Verifies a program's form: all rules but the types of results.
pub fn verify_form(program: &Program) -> Result<()> {
    let graphs = {
        if program.graphs.get(program.main).is_none() {
            return Err(Error::invalid("the program has no main graph"));
        }
        callees_first(program)?
    };
    symbols(program)?;
    graph_names(program, &graphs)?;
    for &id in &graphs {
        graph(program, id)?;
    }
    signature(program)?;
    weights(program)?;
    program.limits.check_depth(program)
}

fn invalid<T>(what: impl Into<String>) -> Result<T> {
    Err(Error::invalid(what))
}

fn symbols(program: &Program) -> Result<()> {
    for (name, symbol) in &program.symbols {
        if **name != *symbol.name() {
            return invalid(format!("symbol {} is listed as {name}", symbol.name()));
        }
        if !crate::text::is_symbol_name(name) {
            return invalid(format!("{name:?} is not a valid name of a symbol"));
        }
        if symbol.min().zip(symbol.max()).is_some_and(|(lo, hi)| lo > hi) {
            return invalid(format!("symbol {name} has an empty range"));
        }
    }
    let conditions = program.guards.iter().map(|g| &g.condition).chain(program.ranges.iter().map(|r| &r.0));
    conditions.into_iter().try_for_each(|e| declared(program, e))
}

/// Every symbol of an expression is declared.
fn declared(program: &Program, expr: &Expr) -> Result<()> {
    match expr {
        Expr::Sym(s) if !program.symbols.contains_key(s.name()) => {
            invalid(format!("symbol {} is not declared", s.name()))
        }
        Expr::Call(c) => c.1.iter().try_for_each(|e| declared(program, e)),
        _ => Ok(()),
    }
}

fn graph_names(program: &Program, graphs: &[GraphId]) -> Result<()> {
    let mut seen: BTreeMap<Arc<str>, GraphId> = BTreeMap::new();
    for &id in graphs.iter().filter(|&&id| id != program.main) {
        let name = &program.graphs[id].name;
        let name = if name.is_empty() { crate::text::default_graph_name(id).into() } else { name.clone() };
        if seen.insert(name.clone(), id).is_some() {
            return invalid(format!("the name {name:?} names two subgraphs"));
        }
    }
    Ok(())
}

/// A graph defines every value once, before its uses, with a unique name, and its nodes fit their schemas.
fn graph(program: &Program, id: GraphId) -> Result<()> {
    let graph = &program.graphs[id];
    let mut defined = vec![false; graph.values.len()];
    let mut names: HashSet<&str> = HashSet::with_capacity(graph.values.len());
    let mut define = |v: ValueId| -> Result<()> {
        let Some(value) = graph.values.get(v) else {
            return invalid(format!("undefined value number {}", v.index()));
        };
        if std::mem::replace(&mut defined[v.index()], true) {
            return invalid(format!("%{} is defined twice", value.name));
        }
        if value.name.is_empty() || !names.insert(&value.name) {
            return invalid(format!("the name {:?} is empty or names two values", value.name));
        }
        value_type(program, &value.ty).map_err(|e| Error { what: format!("%{}: {}", value.name, e.what), ..e })
    };
    for &v in &graph.inputs {
        define(v)?;
    }
    let mut ran = vec![false; graph.nodes.len()];
    // Uses are checked against the position of their definition, as the closure above holds the table.
    let mut position = vec![0u32; graph.values.len()];
    graph.inputs.iter().for_each(|v| position[v.index()] = 1);
    for (at, &n) in graph.order.iter().enumerate() {
        let Some(node) = graph.nodes.get(n) else {
            return invalid(format!("undefined node number {}", n.index()));
        };
        if std::mem::replace(&mut ran[n.index()], true) {
            return Err(Error::invalid("a node is twice in the order").at(graph, n));
        }
        if let Some(r) = node.results.iter().find(|r| graph.values.get(**r).is_none()) {
            return invalid(format!("{}: undefined value number {}", node.op, r.index()));
        }
        for v in node.operands() {
            if position.get(v.index()).is_none_or(|p| *p == 0) {
                return Err(undefined(graph, v).at(graph, n));
            }
        }
        args::check(program, graph, node).map_err(|e| e.at(graph, n))?;
        higher_order::check(program, graph, node).map_err(|e| e.at(graph, n))?;
        for &r in &node.results {
            define(r).map_err(|e| e.at(graph, n))?;
            position[r.index()] = at as u32 + 2;
        }
        if program.stage == Stage::Functional && node.op.mutates(&node.args) {
            return Err(Error::invalid("an operator writes memory in a functional program").at(graph, n));
        }
    }
    for out in &graph.outputs {
        for &v in out.values() {
            if position.get(v.index()).is_none_or(|p| *p == 0) {
                return Err(undefined(graph, v));
            }
        }
        match out {
            Arg::Scalar(e) => declared(program, e)?,
            Arg::Value(_) | Arg::None | Arg::Str(_) | Arg::Complex(..) => {}
            _ => return invalid("a graph returns values, numbers, strings and `None`"),
        }
    }
    Ok(())
}

fn undefined(graph: &Graph, v: ValueId) -> Error {
    match graph.values.get(v) {
        Some(value) => Error::invalid(format!("%{} is used before it is defined", value.name)),
        None => Error::invalid(format!("undefined value number {}", v.index())),
    }
}

/// A type has declared symbols, and a known layout is addressable.
fn value_type(program: &Program, ty: &Type) -> Result<()> {
    match ty {
        Type::Tensor(t) => tensor_type(program, t),
        Type::Scalar(e) => declared(program, e),
        Type::None | Type::Str | Type::Opaque => Ok(()),
    }
}

fn tensor_type(program: &Program, t: &TensorType) -> Result<()> {
    let l = &t.layout;
    if l.sizes.len() != l.strides.len() {
        return invalid(format!("{} strides for {} sizes", l.strides.len(), l.sizes.len()));
    }
    for d in l.sizes.iter().chain(&l.strides).chain([&l.offset]) {
        declared(program, d)?;
        if d.is_float() || d.is_bool() {
            return invalid(format!("{d} is not an integer"));
        }
        if d.known().is_some_and(|d| d < 0) {
            return invalid(format!("a size, stride or offset is negative: {d}"));
        }
    }
    match l.known() {
        Some(l) => known_layout(&l, t.dtype.size()),
        None => Ok(()),
    }
}

/// The elements can be counted, and their bytes addressed.
fn known_layout(l: &Layout, element: usize) -> Result<()> {
    if l.sizes.iter().chain(&l.strides).chain([&l.offset]).any(|d| *d < 0) {
        return invalid("a size, stride or offset is negative");
    }
    let most = i64::MAX as u128;
    let numel = l.sizes.iter().filter(|n| **n != 0).try_fold(element as u128, |n, &d| n.checked_mul(d as u128));
    let reach =
        l.sizes.iter().zip(&l.strides).try_fold(l.offset as u128 + 1, |r, (&n, &s)| {
            r.checked_add((n.max(1) as u128 - 1).checked_mul(s as u128)?)
        });
    match (numel, reach.and_then(|r| r.checked_mul(element as u128))) {
        (Some(n), Some(r)) if n <= most && r <= most => Ok(()),
        _ => invalid(format!("{l} exceeds all memory")),
    }
}

fn signature(program: &Program) -> Result<()> {
    let graph = program.graph();
    let sig = &program.signature;
    if sig.inputs.len() != graph.inputs.len() || sig.outputs.len() != graph.outputs.len() {
        return invalid(format!(
            "the signature has {} inputs and {} outputs, the graph {} and {}",
            sig.inputs.len(),
            sig.outputs.len(),
            graph.inputs.len(),
            graph.outputs.len()
        ));
    }
    for (i, spec) in sig.inputs.iter().enumerate() {
        if spec.value != graph.inputs[i] {
            return invalid(format!("input {i} of the signature is not input {i} of the graph"));
        }
        let value = &graph.values[spec.value];
        let whole = |what: &str| format!("input %{} {what}", value.name);
        match &spec.kind {
            InputKind::Parameter(_) | InputKind::Buffer { .. } | InputKind::Constant(_) => {
                if value.ty.tensor().is_none() {
                    return invalid(whole("is a weight, but not a tensor"));
                }
            }
            InputKind::Storage(under) => {
                let flat = value.ty.tensor().is_some_and(|t| t.rank() == 1 && t.layout.is_contiguous());
                if !flat {
                    return invalid(whole("is a storage, but not a flat tensor"));
                }
                for &u in under {
                    let tensor = graph.inputs.get(u).is_some_and(|v| graph.values[*v].ty.tensor().is_some());
                    if u == i || !tensor || matches!(sig.inputs[u].kind, InputKind::Storage(_)) {
                        return invalid(whole("is the storage of an input that is not a tensor"));
                    }
                }
            }
            InputKind::Fixed { value, .. } => {
                if let Arg::Scalar(e) = value {
                    declared(program, e)?;
                }
            }
            InputKind::User(_) | InputKind::Opaque(_) => {}
        }
    }
    for (i, spec) in sig.outputs.iter().enumerate() {
        output(program, i, spec).map_err(|e| Error { what: format!("output {i}: {}", e.what), ..e })?;
    }
    Ok(())
}

fn output(program: &Program, i: usize, spec: &crate::OutputSpec) -> Result<()> {
    let graph = program.graph();
    let given = match &graph.outputs[i] {
        Arg::Value(v) => graph.values[*v].ty.tensor(),
        _ => None,
    };
    let input = |i: usize| match graph.inputs.get(i) {
        Some(&v) => Ok(graph.values[v].ty.tensor()),
        None => invalid(format!("the program has no input {i}")),
    };
    match spec.kind {
        OutputKind::User | OutputKind::Loss | OutputKind::Token => {}
        OutputKind::Mutation(at) | OutputKind::Gradient(at) => match (given, input(at)?) {
            (Some(given), Some(own)) => {
                if given.dtype != own.dtype || differ(given.sizes(), own.sizes()) {
                    return invalid(format!("{given} is not of the type of its input, {own}"));
                }
            }
            _ => return invalid("both the output and its input must be tensors"),
        },
        OutputKind::Base => {
            if given.is_none() {
                return invalid("a base must be a tensor");
            }
        }
        OutputKind::Metadata(at) => {
            if input(at)?.is_none() || spec.alias.is_none() {
                return invalid("an input that becomes another view must be a tensor with a declared alias");
            }
        }
    }
    if program.stage == Stage::Imported && (spec.alias.is_some() || spec.kind == OutputKind::Base) {
        return invalid("aliases of outputs are declared in functional programs only");
    }
    let Some(alias) = &spec.alias else { return Ok(()) };
    tensor_type(program, &TensorType { dtype: alias.dtype, layout: alias.layout.clone() })?;
    match spec.kind {
        OutputKind::User | OutputKind::Loss => match given {
            Some(t) if t.dtype == alias.dtype && !differ(t.sizes(), &alias.layout.sizes) => {}
            _ => return invalid("the computed output differs in type from its declared view"),
        },
        OutputKind::Metadata(_) => {}
        _ => return invalid("only user outputs and inputs are views"),
    }
    alias_root(program, alias)
}

fn alias_root(program: &Program, alias: &OutputAlias) -> Result<()> {
    let graph = program.graph();
    let (root, whole) = match alias.root {
        AliasRoot::Input(at) => {
            let whole = matches!(program.signature.inputs.get(at).map(|s| &s.kind), Some(InputKind::Storage(_)));
            (graph.inputs.get(at).copied(), whole)
        }
        AliasRoot::Base(at) => {
            let is_base = program.signature.outputs.get(at).is_some_and(|o| o.kind == OutputKind::Base);
            let value = match graph.outputs.get(at) {
                Some(Arg::Value(v)) if is_base => Some(*v),
                _ => None,
            };
            (value, true)
        }
    };
    let Some(root) = root.and_then(|v| graph.values[v].ty.tensor()) else {
        return invalid("its base is missing");
    };
    // A storage or base is whole; an input may be a view of a larger storage.
    if whole && let (Some(root), Some(view)) = (root.known(), alias.layout.known()) {
        let bytes = |l: &Layout, element: usize| {
            if l.sizes.contains(&0) { 0 } else { l.cell_range().end.saturating_mul(element as i64) }
        };
        if bytes(&view, alias.dtype.size()) > bytes(&root.layout, root.dtype.size()) {
            return invalid("the view exceeds its base");
        }
    }
    Ok(())
}

/// Whether two lists of sizes differ provably.
fn differ(a: &[Expr], b: &[Expr]) -> bool {
    a.len() != b.len() || a.iter().zip(b).any(|(a, b)| a.equals(b) == Some(false))
}

fn weights(program: &Program) -> Result<()> {
    let weights = &program.weights;
    for (name, w) in &weights.tensors {
        let wrong = |why: &str| invalid(format!("weight {name:?} {why}"));
        if w.layout.sizes.len() != w.layout.strides.len() {
            return wrong("has not as many strides as sizes");
        }
        known_layout(&w.layout, w.dtype.size())
            .map_err(|e| Error { what: format!("weight {name:?}: {}", e.what), ..e })?;
        if u32::try_from(w.storage).is_err() {
            return wrong("has a storage number that is too large");
        }
        // The weights of a parsed text have no memory yet.
        if weights.storages.is_empty() || w.layout.sizes.contains(&0) {
            continue;
        }
        let bytes = w.layout.cell_range().end.saturating_mul(w.dtype.size() as i64);
        if weights.storages.get(w.storage).is_none_or(|s| bytes > s.len() as i64) {
            return wrong("reaches beyond its storage");
        }
    }
    let graph = program.graph();
    for (i, spec) in program.signature.inputs.iter().enumerate() {
        let Some(name) = program.weight_name(i) else { continue };
        let (Some(w), Some(t)) = (weights.tensors.get(name), graph.values[spec.value].ty.tensor()) else { continue };
        let sizes: Vec<Expr> = w.layout.sizes.iter().map(|&n| Expr::Int(n)).collect();
        if w.dtype != t.dtype || differ(&sizes, t.sizes()) {
            return invalid(format!("weight {name:?} is not of the type of its input, {t}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
