//! Dead code elimination: removes nodes without effect whose results are not needed.

use restride_ir::{
    Arg, CollectTree, Expr, Fails, Graph, GraphId, Node, NodeId, Origin, Program, Stage, Symbol, Table, Type, ValueId,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Marks calls that the outputs do not depend on and that fail on some elements ([`OpDef::fails`](restride_ir::OpDef::fails)): eager
/// PyTorch fails there, so [`dce`] keeps them, unless a divisor is a number. Calls that other passes leave without a reader have no mark.
pub fn keep_failing(program: &mut Program) {
    for id in program.graphs.ids().collect::<Vec<_>>() {
        let graph = &mut program.graphs[id];
        if graph.ordered().all(|(_, node)| node.op.def().fails == Fails::Never) {
            continue;
        }
        let mut needed: Table<ValueId, bool> = Table::with_capacity(graph.values.len());
        graph.output_values().collect::<Vec<_>>().into_iter().for_each(|v| needed.set(v, true));
        for at in graph.order.clone().into_iter().rev() {
            let node = &graph.nodes[at];
            let live =
                node.op.def().effectful || node.op.mutates(&node.args) || node.results.iter().any(|r| needed[*r]);
            let result = |r: &ValueId| graph.values[*r].ty.tensor().is_some_and(|t| node.op.def().fails.at(t.dtype));
            let number =
                matches!(node.args.get(1), Some(Arg::Scalar(e)) if e.constant().is_some_and(|n| n.as_f64() != 0.0));
            let divides = node.op.def().fails == Fails::Integers;
            let fails = node.results.iter().any(result) && !(divides && number);
            if live || fails {
                node.operands().for_each(|v| needed.set(v, true));
            }
            if fails && !live {
                graph.nodes[at].origin = Arc::new(Origin { unread: true, ..(*node.origin).clone() });
            }
        }
    }
}

/// The data-dependent symbols that each body mentions.
type BodySymbols = BTreeMap<GraphId, BTreeSet<Symbol>>;

/// Removes unneeded nodes from every graph of a functional program. Nodes that write stay in an imported one.
pub fn dce(program: &mut Program) {
    let writes_stay = program.stage == Stage::Imported;
    let ids: Vec<_> = program.graphs.ids().collect();
    let read = (!program.symbols.is_empty()).then(|| {
        let bodies = ids.iter().filter(|g| **g != program.main);
        bodies.map(|g| (*g, body_symbols(program, *g))).collect_map()
    });
    for id in ids {
        sweep(&mut program.graphs[id], read.as_ref(), writes_stay);
    }
}

/// Data-dependent symbols that a body and the bodies in it mention: the graph outside may learn them.
fn body_symbols(program: &Program, body: GraphId) -> BTreeSet<Symbol> {
    let mut out = BTreeSet::new();
    let mut seen = BTreeSet::from([body]);
    let mut open = vec![body];
    while let Some(id) = open.pop() {
        let Some(graph) = program.graphs.get(id) else { continue };
        graph.values.iter().for_each(|(_, v)| type_symbols(&v.ty, &mut out));
        for arg in graph.ordered().flat_map(|(_, n)| &n.args).chain(&graph.outputs) {
            arg_symbols(arg, &mut out);
            open.extend(arg.graph().filter(|g| seen.insert(*g)));
        }
    }
    out.retain(Symbol::is_unbacked);
    out
}

/// Removes unneeded nodes from a graph; `bodies` is `None` where the program has no symbols.
fn sweep(graph: &mut Graph, bodies: Option<&BodySymbols>, writes_stay: bool) {
    // The node that a data-dependent symbol is learnt from is the first that mentions it in a result.
    let mut learnt: BTreeMap<Symbol, NodeId> = BTreeMap::new();
    for (id, node) in graph.ordered().filter(|_| bodies.is_some()) {
        for r in &node.results {
            let mut own = BTreeSet::new();
            type_symbols(&graph.values[*r].ty, &mut own);
            own.into_iter().filter(Symbol::is_unbacked).for_each(|s| {
                learnt.entry(s).or_insert(id);
            });
        }
    }
    let mut teaches: BTreeMap<NodeId, Vec<Symbol>> = BTreeMap::new();
    learnt.into_iter().for_each(|(s, id)| teaches.entry(id).or_default().push(s));
    let mut needed: Table<ValueId, bool> = Table::with_capacity(graph.values.len());
    let mut symbols: BTreeSet<Symbol> = BTreeSet::new();
    for v in graph.output_values().collect::<Vec<_>>() {
        needed.set(v, true);
        type_symbols(&graph.values[v].ty, &mut symbols);
    }
    graph.outputs.iter().for_each(|a| arg_symbols(a, &mut symbols));
    let mut kept: Vec<NodeId> = Vec::with_capacity(graph.order.len());
    for &id in graph.order.iter().rev() {
        let node = &graph.nodes[id];
        let defines = teaches.get(&id).is_some_and(|own| own.iter().any(|s| symbols.contains(s)));
        // A bound of a number is checked where the number is learnt, used or not.
        let checks = teaches.get(&id).is_some_and(|own| own.iter().any(|s| is_bounded(graph, node, s)));
        let fails = node.origin.unread && node.op.def().fails != Fails::Never;
        let stays = node.op.def().effectful
            || fails
            || (writes_stay && node.op.mutates(&node.args))
            || defines
            || checks
            || node.results.iter().any(|r| needed[*r]);
        if !stays {
            continue;
        }
        kept.push(id);
        for v in node.operands() {
            needed.set(v, true);
        }
        let Some(bodies) = bodies else { continue };
        for arg in &node.args {
            arg_symbols(arg, &mut symbols);
        }
        symbols.extend(node.bodies().filter_map(|body| bodies.get(&body)).flatten().cloned());
        for r in &node.results {
            type_symbols(&graph.values[*r].ty, &mut symbols);
        }
    }
    kept.reverse();
    graph.order = kept;
}

/// Whether a node reads this symbol as a number that has a bound.
fn is_bounded(graph: &Graph, node: &Node, s: &Symbol) -> bool {
    let is_it = |r: &ValueId| matches!(&graph.values[*r].ty, Type::Scalar(Expr::Sym(own)) if own == s);
    (s.min().is_some() || s.max().is_some()) && node.results.iter().any(is_it)
}

fn arg_symbols(a: &Arg, out: &mut BTreeSet<Symbol>) {
    a.scalars()
        .iter()
        .filter(|e| !matches!(e, Expr::Int(_) | Expr::Bool(_) | Expr::Float(_)))
        .for_each(|e| e.symbols(out));
}

fn type_symbols(ty: &Type, out: &mut BTreeSet<Symbol>) {
    match ty {
        Type::Tensor(t) => {
            t.layout.sizes.iter().chain(&t.layout.strides).for_each(|e| {
                if !matches!(e, Expr::Int(_)) {
                    e.symbols(out)
                }
            });
        }
        Type::Scalar(e) => e.symbols(out),
        _ => {}
    }
}
