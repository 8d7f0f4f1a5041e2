//! Elements of which some bytes are written, through a view of another item size.
//!
//! What is written as bits is a constant, and whole elements are written in the base's own cells. Where a write cannot be said
//! that way, the base is taken apart into bits and put together again, and a gradient would be cut for all of it, for what
//! was not written too. That is refused.

use super::Flow;
use restride_ir::{Arg, Error, Graph, Result, Table, ValueId};

/// Holds that nothing between the targets and `starts` is such a write.
///
/// # Errors
/// The write.
pub(super) fn no_parts_of_elements(graph: &Graph, flow: &Flow, starts: &[ValueId]) -> Result<()> {
    let mut bits: Table<ValueId, bool> = Table::new();
    let mut writes = Vec::new();
    for (id, node) in graph.ordered() {
        let Some(Arg::Value(first)) = node.args.first() else { continue };
        if node.op.is_view() {
            let size = |v: ValueId| graph.values[v].ty.tensor().map(|t| t.dtype.size());
            for &r in &node.results {
                if bits[*first] || flow.needs[*first] && !flow.needs[r] && size(r) != size(*first) {
                    bits.set(r, true);
                }
            }
        } else if bits[*first] && node.origin.in_place && !node.op.def().pointwise {
            writes.push(id);
        }
    }
    if writes.is_empty() {
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
    match writes.into_iter().find(|id| graph.nodes[*id].results.iter().any(|r| read[*r])) {
        None => Ok(()),
        Some(id) => Err(Error::unsupported(
            "a write to some bytes of elements that are differentiated, by way of a view of another item size",
        )
        .help("write whole elements, or to a copy of the view")
        .at(graph, id)),
    }
}
