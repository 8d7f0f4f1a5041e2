//! New contents of inputs that the program also returns.
//!
//! PyTorch's `module()` of a functional program copies the new contents into the input and then returns the input. The importer
//! adds that `copy_` to the graph.

use restride_ir::{Arg, CollectTree, Error, Graph, Op, OutputKind, Program, Result, ValueId};
use std::collections::BTreeSet;

/// Adds a `copy_` for returned new contents, unless an output may share an input's memory.
///
/// # Errors
/// An operator table without `copy_`.
pub(super) fn write(program: &mut Program, lookup: &dyn Fn(&str) -> Option<Op>) -> Result<()> {
    let graph = program.graph();
    let outputs = || graph.outputs.iter().zip(&program.signature.outputs);
    let returned: BTreeSet<ValueId> = outputs()
        .filter(|(_, spec)| crate::is_result(spec))
        .filter_map(|(arg, _)| if let Arg::Value(v) = arg { Some(*v) } else { None })
        .collect_set();
    let mut written: Vec<(usize, ValueId, ValueId)> = Vec::new();
    for (k, (arg, spec)) in outputs().enumerate() {
        let (OutputKind::Mutation(i), Arg::Value(v)) = (&spec.kind, arg) else { continue };
        let input = program.signature.inputs[*i].value;
        let (Some(from), Some(to)) = (graph.values[*v].ty.tensor(), graph.values[input].ty.tensor()) else { continue };
        let fits = from.dtype == to.dtype && from.layout.sizes == to.layout.sizes;
        let again = written.iter().any(|w| w.1 == input || w.2 == *v);
        if fits && returned.contains(v) && !again {
            written.push((k, input, *v));
        }
    }
    if written.is_empty() {
        return Ok(());
    }
    let shared = may_share_inputs(graph);
    if graph.output_values().any(|v| shared.contains(&v)) {
        return Ok(());
    }
    let copy = lookup("aten.copy_.default").ok_or_else(|| Error::invalid("the operator table has no copy_"))?;
    let id = program.main;
    let graph = &mut program.graphs[id];
    for (_, input, v) in &written {
        let mut args = vec![Arg::Value(*input), Arg::Value(*v)];
        copy.fill_defaults_or_none(&mut args);
        let mut name = format!("{}_written", graph.values[*input].name);
        while graph.values.iter().any(|(_, value)| *value.name == *name) {
            name.push('_');
        }
        let ty = graph.values[*input].ty.clone();
        let node = graph.add_node(copy, args, [(name.into(), ty)], Default::default());
        let made = graph.nodes[node].results[0];
        for (arg, spec) in graph.outputs.iter_mut().zip(&program.signature.outputs) {
            if !matches!(spec.kind, OutputKind::Mutation(_)) && matches!(arg, Arg::Value(own) if own == v) {
                *arg = Arg::Value(made);
            }
        }
    }
    for (k, ..) in written.iter().rev() {
        graph.outputs.remove(*k);
        program.signature.outputs.remove(*k);
    }
    Ok(())
}

/// Inputs, and values that may be views of them.
fn may_share_inputs(graph: &Graph) -> BTreeSet<ValueId> {
    let mut shared: BTreeSet<ValueId> = graph.inputs.iter().copied().collect_set();
    for (_, node) in graph.ordered() {
        let views = node.op.is_view() || node.op.may_pass_through() || node.op.def().hop.is_some();
        if views && node.operands().any(|v| shared.contains(&v)) {
            shared.extend(node.results.iter().copied());
        }
    }
    shared
}
