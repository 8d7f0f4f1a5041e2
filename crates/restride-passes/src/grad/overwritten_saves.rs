//! Values that PyTorch saves for backward and that an unrecorded write changes afterwards: under `no_grad`, or through a
//! detached tensor. PyTorch refuses to differentiate then, and so does the graph: the saved value differs from the one that
//! the program computes after the write.

use super::prepare::NodesBetween;
use crate::build::Rebuilt;
use restride_ir::{Arg, Error, Node, Origin, Program, Result, Table, ValueId};
use restride_ops::gradient::{SavedByPyTorch, kept};
use std::sync::Arc;

/// Refuses a call on the way of the gradients whose saved values were overwritten.
///
/// # Errors
/// The call.
pub(super) fn refuse(program: &Program, between: &NodesBetween) -> Result<()> {
    let graph = program.graph();
    for (id, node) in graph.ordered() {
        let Some(marked) = &node.origin.overwritten else { continue };
        let on_way = node.results.iter().any(|r| between.reached[*r]) && between.flow.passes(node);
        if !on_way {
            continue;
        }
        let all: Vec<ValueId> = node.operands().chain(node.results.iter().copied()).collect();
        let saves = |at: &&u32| match (kept(node.op), node.op.def().hop) {
            (Some(kept), _) => is_kept(node, kept, **at as usize, &between.flow.needs),
            (None, hop) => hop.is_some(),
        };
        if let Some(v) = marked.iter().find(saves).and_then(|at| all.get(*at as usize)) {
            let name = &graph.values[*v].name;
            let what = format!("%{name} is saved for the gradient of {} and modified by an inplace operation", node.op);
            let help = "PyTorch has no gradient here: under `no_grad` or through `detach()`, write a clone, or before the value is used";
            return Err(Error::unsupported(what).help(help).at(graph, id));
        }
    }
    Ok(())
}

/// Whether PyTorch saves the value at a position among the operands, then the results, of a node.
fn is_kept(node: &Node, kept: &SavedByPyTorch, at: usize, needs: &Table<ValueId, bool>) -> bool {
    let mut first = 0;
    for (i, arg) in node.args.iter().enumerate() {
        let count = arg.values().count();
        if (first..first + count).contains(&at) {
            let asked = |i: &usize| node.args.get(*i).is_some_and(|a: &Arg| a.values().any(|v| needs[*v]));
            return kept.args.iter().any(|k| k.arg == i && (k.asked.is_empty() || k.asked.iter().any(asked)));
        }
        first += count;
    }
    kept.results.contains(&(at.saturating_sub(first)))
}

/// Hands the marks of a node on to the nodes from `from` on that stand in its place. One that PyTorch saves values of as of one
/// call was looked at as such.
pub(super) fn hand_on(new: &mut Rebuilt<'_>, node: &Node, from: usize) {
    let Some(marked) = &node.origin.overwritten else { return };
    let all: Vec<ValueId> = node.operands().chain(node.results.iter().copied()).collect();
    let marked = marked.iter().filter_map(|at| new.map[*all.get(*at as usize)?]);
    let marked: Vec<ValueId> = if kept(node.op).is_some() { Vec::new() } else { marked.collect() };
    for at in from..new.graph.order.len() {
        let id = new.graph.order[at];
        let added = &mut new.graph.nodes[id];
        let values = added.operands().chain(added.results.iter().copied());
        let found: Vec<u32> = (0..).zip(values).filter(|(_, v)| marked.contains(v)).map(|(i, _)| i).collect();
        let overwritten = if found.is_empty() { None } else { Some(found.into()) };
        added.origin = Arc::new(Origin { overwritten, ..(*added.origin).clone() });
    }
}
