//! Weights under several names: one tensor, which has one gradient.

use restride_ir::{Arg, Program, Table, ValueId};
use std::collections::BTreeMap;

/// For each input, its own position, or that of the input on the same cells that the graph reads.
pub(super) type Tied = Vec<usize>;

/// Lets the graph read every weight by one of its names: by one that it reads already, which is the one that a mutation
/// is declared of.
pub(super) fn tie(program: &mut Program) -> Tied {
    let inputs = &program.signature.inputs;
    let mut tied: Tied = (0..inputs.len()).collect();
    let mut read: Table<ValueId, bool> = Table::new();
    for (_, node) in program.graph().ordered() {
        node.operands().for_each(|v| read.set(v, true));
    }
    program.graph().output_values().for_each(|v| read.set(v, true));
    // The weights on one storage are few.
    let mut of_storage: BTreeMap<usize, Vec<Vec<usize>>> = BTreeMap::new();
    for i in 0..inputs.len() {
        let weight = |i: usize| program.weight_name(i).and_then(|n| program.weights.tensors.get(n));
        let Some(own) = weight(i) else { continue };
        let groups = of_storage.entry(own.storage).or_default();
        let same = |g: &&mut Vec<usize>| {
            weight(g[0]).is_some_and(|w| w.dtype == own.dtype && w.layout == own.layout)
                && program.graph().values[inputs[g[0]].value].ty == program.graph().values[inputs[i].value].ty
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(i),
            None => groups.push(vec![i]),
        }
    }
    let mut other: Table<ValueId, Option<ValueId>> = Table::new();
    for group in of_storage.into_values().flatten().filter(|g| g.len() > 1) {
        let to = group.iter().copied().find(|i| read[inputs[*i].value]).unwrap_or(group[0]);
        for i in group {
            tied[i] = to;
            other.set(inputs[i].value, Some(inputs[to].value));
        }
    }
    let renamed = |a: &Arg| a.map_values(|v| other[*v].unwrap_or(*v));
    let graph = program.graph_mut();
    for id in graph.order.clone() {
        let node = &graph.nodes[id];
        if node.operands().any(|v| other[v].is_some_and(|o| o != v)) {
            let args = node.args.iter().map(renamed).collect();
            graph.nodes[id].args = args;
        }
    }
    graph.outputs = graph.outputs.iter().map(renamed).collect();
    tied
}
