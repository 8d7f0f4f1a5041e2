//! Removes calls that nothing reads: TorchScript code computes sizes as tensors.

use restride_ir::{Arg, Graph, GraphId, InputKind, InputSpec, Program, ValueId, Weights};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Removes nodes without effect whose results are not read, from all graphs.
pub(super) fn remove_unread(program: &mut Program) {
    for id in program.graphs.ids().collect::<Vec<GraphId>>() {
        clean(&mut program.graphs[id]);
    }
}

fn clean(graph: &mut Graph) {
    let mut read = vec![false; graph.values.len()];
    let mark = |args: &[Arg], read: &mut Vec<bool>| {
        for v in args.iter().flat_map(Arg::values) {
            read[restride_ir::Id::index(*v)] = true;
        }
    };
    mark(&graph.outputs, &mut read);
    let mut kept = Vec::with_capacity(graph.order.len());
    for &id in graph.order.iter().rev() {
        let node = &graph.nodes[id];
        let def = node.op.def();
        let learns =
            |v: &ValueId| matches!(graph.values[*v].ty, restride_ir::Type::Scalar(_)) || sizes_learnt(graph, *v);
        let stays = def.effectful
            || def.hop.is_some()
            || def.metadata
            || def.random
            || node.op.mutates(&node.args)
            || node.op.is_mutable()
            || node.results.iter().any(|r| read[restride_ir::Id::index(*r)] || learns(r));
        if stays {
            mark(&node.args, &mut read);
            kept.push(id);
        }
    }
    kept.reverse();
    graph.order = kept;
}

/// Whether a run learns a size from the value.
fn sizes_learnt(graph: &Graph, v: ValueId) -> bool {
    graph.values[v].ty.tensor().is_some_and(|t| t.layout.sizes.iter().any(restride_ir::Expr::is_learnt))
}

/// Orders the inputs: parameters, buffers, constants, the user's. Weights that nothing reads are left out, and their storages.
pub(super) fn order_inputs(program: &mut Program, specs: Vec<InputSpec>, weights: Weights) {
    let graph = program.graph();
    let mut read = vec![false; graph.values.len()];
    for v in graph.ordered().flat_map(|(_, n)| n.operands()).chain(graph.output_values()) {
        read[restride_ir::Id::index(v)] = true;
    }
    let rank = |kind: &InputKind| match kind {
        InputKind::Parameter(_) => 0,
        InputKind::Buffer { .. } => 1,
        InputKind::Constant(_) => 2,
        _ => 3,
    };
    let mut kept: Vec<InputSpec> =
        specs.into_iter().filter(|s| rank(&s.kind) == 3 || read[restride_ir::Id::index(s.value)]).collect();
    kept.sort_by_key(|s| rank(&s.kind));
    program.graph_mut().inputs = kept.iter().map(|s| s.value).collect();
    program.signature.inputs = kept;
    let mut own = Weights::default();
    // A text without weights has types alone.
    let present = weights.tensors.values().all(|w| w.storage < weights.storages.len());
    let mut absent = 0;
    let mut moved: BTreeMap<usize, usize> = BTreeMap::new();
    for i in 0..program.signature.inputs.len() {
        let Some(name) = program.weight_name(i) else { continue };
        let Some(weight) = weights.tensors.get(name) else { continue };
        let mut weight = weight.clone();
        let old = weight.storage;
        weight.storage = *moved.entry(old).or_insert_with(|| {
            absent += 1;
            if present {
                own.storages.push(weights.storages[old].clone());
            }
            absent - 1
        });
        own.tensors.insert(name.clone(), weight);
    }
    program.weights = Arc::new(own);
}
