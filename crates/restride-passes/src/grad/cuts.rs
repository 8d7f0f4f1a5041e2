//! Writes of which a functional program does not say enough for their gradients, which would be cut without a word. They are
//! refused.
//!
//! - Some bytes of elements are written, through a view of another item size. What is written as bits is a constant, and whole
//!   elements are written in the base's own cells; where a write cannot be said that way, the base is taken apart into bits and
//!   put together again, and so is what was not written.
//! - What a detached tensor's memory holds is a constant where that tensor is read, but for what was written through it. Where
//!   what was written is to be differentiated, and read through another view than it was written through, the two are one value.

use super::Flow;
use restride_ir::{Arg, Error, Graph, Movement, Node, NodeId, Result, Table, ValueId};

/// Holds that nothing that is read on the way to `starts` is such a write.
///
/// # Errors
/// The write, or what reads it.
pub(super) fn refuse(graph: &Graph, flow: &Flow, starts: &[ValueId]) -> Result<()> {
    let parts = parts_of_elements(graph, flow);
    let behind = behind_detach(graph, flow);
    if parts.is_empty() && behind.is_empty() {
        return Ok(());
    }
    let mut read: Table<ValueId, bool> = Table::new();
    starts.iter().for_each(|v| read.set(*v, true));
    for id in graph.order.iter().rev() {
        let node = &graph.nodes[*id];
        if node.results.iter().any(|r| read[*r]) {
            node.operands().for_each(|v| read.set(v, true));
        }
    }
    let on_way = |id: &NodeId| graph.nodes[*id].results.iter().any(|r| read[*r]);
    if let Some(id) = parts.into_iter().find(on_way) {
        let what = "a write to some bytes of elements that are differentiated, by way of a view of another item size";
        return Err(Error::unsupported(what).help("write whole elements, or to a copy of the view").at(graph, id));
    }
    if let Some(id) = behind.into_iter().find(on_way) {
        let what = "a detached tensor that something was written through which is differentiated";
        let help = "clone the detached tensor before writing through it";
        return Err(Error::unsupported(what).help(help).at(graph, id));
    }
    Ok(())
}

/// Operand 0 of a node.
fn first(node: &Node) -> Option<ValueId> {
    match node.args.first() {
        Some(Arg::Value(v)) => Some(*v),
        _ => None,
    }
}

/// Writes to some bytes of elements that are differentiated.
fn parts_of_elements(graph: &Graph, flow: &Flow) -> Vec<NodeId> {
    let mut bits: Table<ValueId, bool> = Table::new();
    let mut writes = Vec::new();
    let size = |v: ValueId| graph.values[v].ty.tensor().map(|t| t.dtype.size());
    for (id, node) in graph.ordered() {
        let Some(first) = first(node) else { continue };
        if node.op.is_view() {
            for &r in &node.results {
                if bits[first] || flow.needs[first] && !flow.needs[r] && size(r) != size(first) {
                    bits.set(r, true);
                }
            }
        } else if bits[first] && node.origin.in_place && !node.op.def().pointwise {
            writes.push(id);
        }
    }
    writes
}

/// Where memory is read as a constant that holds what was written through a detached tensor and is differentiated.
fn behind_detach(graph: &Graph, flow: &Flow) -> Vec<NodeId> {
    let mut holds: Table<ValueId, bool> = Table::new();
    let mut reads = Vec::new();
    for (id, node) in graph.ordered() {
        let Some(first) = first(node) else { continue };
        if node.op.is_view() {
            let constant = flow.needs[first] && node.results.iter().all(|r| !flow.needs[*r]);
            if holds[first] && constant {
                reads.push(id);
            } else if holds[first] {
                node.results.iter().for_each(|r| holds.set(*r, true));
            }
            continue;
        }
        if !node.origin.in_place {
            continue;
        }
        let written = match node.op.def().movement {
            Some(Movement::Scatter { src, .. }) => {
                node.args.get(src as usize).is_some_and(|a| a.values().any(|v| flow.needs[*v]))
            }
            _ => node.operands().any(|v| flow.needs[v]),
        };
        if holds[first] || node.origin.detached && written {
            node.results.iter().for_each(|r| holds.set(*r, true));
        }
    }
    reads
}
