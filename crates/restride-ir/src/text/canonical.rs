//! Programs without what is left over in their arenas.

use super::reachable;
use crate::{Arg, Graph, GraphId, IdArena, Node, Program, ValueId};
use std::collections::HashMap;

/// The same program with only what can be reached, numbered in the order of the text: graphs as they are mentioned,
/// the main one first; nodes in order; values as inputs, then results. Programs that mean the same term by term
/// are equal after this. The program must be well formed (see [`verify`](crate::verify)).
pub(super) fn compact(program: &Program) -> Program {
    let order = reachable(program);
    let ids: HashMap<GraphId, GraphId> = order.iter().copied().zip((0..).map(crate::Id::new)).collect();
    let mut out = Program { graphs: IdArena::new(), ..program.clone() };
    for &old in &order {
        let (graph, values) = compact_graph(&program.graphs[old], &ids);
        out.graphs.push(graph);
        if old == program.main {
            for spec in &mut out.signature.inputs {
                spec.value = values[&spec.value];
            }
        }
    }
    out.main = ids[&program.main];
    out
}

fn compact_graph(graph: &Graph, ids: &HashMap<GraphId, GraphId>) -> (Graph, HashMap<ValueId, ValueId>) {
    let mut out = Graph { name: graph.name.clone(), ..Graph::new() };
    let mut values = HashMap::new();
    for &v in &graph.inputs {
        let new = out.values.push(graph.values[v].clone());
        values.insert(v, new);
        out.inputs.push(new);
    }
    let arg = |a: &Arg, values: &HashMap<ValueId, ValueId>| match a {
        Arg::Graph(g) => Arg::Graph(ids[g]),
        a => a.map_values(|v| values[v]),
    };
    for (_, node) in graph.ordered() {
        let args = node.args.iter().map(|a| arg(a, &values)).collect();
        let mut results = smallvec::SmallVec::new();
        for &r in &node.results {
            let new = out.values.push(graph.values[r].clone());
            values.insert(r, new);
            results.push(new);
        }
        let id = out.nodes.push(Node { op: node.op, args, results, origin: node.origin.clone() });
        out.order.push(id);
    }
    out.outputs = graph.outputs.iter().map(|a| arg(a, &values)).collect();
    (out, values)
}
