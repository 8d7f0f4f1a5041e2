//! Reducer of failing programs: removes nodes and outputs while the program fails.

use crate::generate::RandomProgram;
use restride_ir::{Arg, Graph, GraphId, ValueId};
use std::collections::BTreeSet;

/// The smallest program found for which `fails` still holds.
pub fn reduce(sample: &RandomProgram, fails: impl Fn(&RandomProgram) -> bool) -> RandomProgram {
    let mut best = sample.clone();
    loop {
        let before = size(&best);
        let graphs: Vec<GraphId> = best.program.graphs.ids().collect();
        for &id in &graphs {
            let mut at = best.program.graphs[id].order.len();
            while at > 0 {
                at -= 1;
                // A loop without its counter would not end.
                if id != best.program.main && gives_first(&best.program.graphs[id], at) {
                    continue;
                }
                let mut smaller = best.clone();
                if without(&mut smaller.program.graphs[id], at) && fails(&smaller) {
                    best = smaller;
                    at = at.min(best.program.graphs[id].order.len());
                }
            }
        }
        let mut at = best.program.graph().outputs.len();
        while at > 1 {
            at -= 1;
            let mut smaller = best.clone();
            smaller.program.graph_mut().outputs.remove(at);
            smaller.program.signature.outputs.remove(at);
            if fails(&smaller) {
                best = smaller;
            }
        }
        if size(&best) == before {
            return best;
        }
    }
}

/// Whether the node at a position computes its graph's first output.
fn gives_first(graph: &Graph, at: usize) -> bool {
    let node = &graph.nodes[graph.order[at]];
    matches!(graph.outputs.first(), Some(Arg::Value(v)) if node.results.contains(v))
}

fn size(sample: &RandomProgram) -> usize {
    sample.program.graphs.iter().map(|(_, g)| g.order.len() + g.outputs.len()).sum()
}

/// Removes the node at a position. An operand of the same type replaces its result; otherwise its uses are removed, too.
/// False if an output would have no value.
fn without(graph: &mut Graph, at: usize) -> bool {
    let id = graph.order.remove(at);
    let node = graph.nodes[id].clone();
    let mut gone: BTreeSet<ValueId> = BTreeSet::new();
    for &r in &node.results {
        let stands = node.operands().find(|v| graph.values[*v].ty == graph.values[r].ty);
        match stands {
            Some(v) => replace(graph, r, v),
            None => {
                gone.insert(r);
            }
        }
    }
    let mut kept = Vec::with_capacity(graph.order.len());
    for &id in &graph.order {
        let node = &graph.nodes[id];
        if node.operands().any(|v| gone.contains(&v)) {
            gone.extend(node.results.iter().copied());
        } else {
            kept.push(id);
        }
    }
    graph.order = kept;
    let inputs = graph.inputs.clone();
    // A removed output becomes an input of the same type, else the cut fails.
    for i in 0..graph.outputs.len() {
        let Arg::Value(v) = graph.outputs[i] else { continue };
        if gone.contains(&v) {
            let Some(&other) = inputs.iter().find(|x| graph.values[**x].ty == graph.values[v].ty) else { return false };
            graph.outputs[i] = Arg::Value(other);
        }
    }
    true
}

fn replace(graph: &mut Graph, old: ValueId, new: ValueId) {
    let swap = |v: &ValueId| if *v == old { new } else { *v };
    for &id in &graph.order {
        let args = graph.nodes[id].args.iter().map(|a| a.map_values(swap)).collect();
        graph.nodes[id].args = args;
    }
    graph.outputs = graph.outputs.iter().map(|a| a.map_values(swap)).collect();
}
