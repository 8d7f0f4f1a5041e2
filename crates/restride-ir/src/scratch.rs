//! Scratch and multiply-adds of kernels, from the declarations of their operators.

use crate::{
    Arg, Args, Graph, Kernel, Layout, Meta, NodeId, OpError, Place, Reuse, ReuseKind, Scalar, ValueId, aligned,
    known_meta, operands_of,
};

/// Arguments of a node, tensors in the layouts of `reads` (one for each of `Node::operands`; a missing place means the
/// type's layout).
///
/// # Errors
/// Unknown sizes or numbers.
pub fn placed_args(graph: &Graph, id: NodeId, reads: &[Option<Place>]) -> Result<Vec<Arg<Meta, Scalar>>, OpError> {
    let mut at = reads.iter();
    let number = |e: &crate::Expr| e.constant().ok_or_else(|| OpError::new("a number that is not known"));
    graph.nodes[id].args.iter().map(|a| a.try_map(|v| placed(graph, *v, at.next()), number)).collect()
}

fn placed(graph: &Graph, v: ValueId, place: Option<&Option<Place>>) -> Result<Meta, OpError> {
    let mut meta = known_meta(graph, v)?;
    if let Some(Some(place)) = place {
        meta.layout = place.layout.clone();
    }
    Ok(meta)
}

/// Scratch bytes of a node's kernel at these places: 0 if the operator declares none, or if only a run knows the numbers.
pub fn scratch_bytes(graph: &Graph, id: NodeId, reads: &[Option<Place>], writes: &[Option<Place>]) -> i64 {
    let node = &graph.nodes[id];
    let def = node.op.def();
    let (Some(scratch), Kernel::Fixed(_) | Kernel::Collective(_)) = (def.scratch, def.kernel) else { return 0 };
    let Ok(args) = placed_args(graph, id, reads) else { return 0 };
    let outs = node.results.iter().enumerate().map(|(i, v)| placed(graph, *v, writes.get(i)));
    let Ok(outs) = outs.collect::<Result<Vec<Meta>, OpError>>() else { return 0 };
    let bytes = scratch(&Args(&args), &outs).unwrap_or(0);
    let trailing = def.reuse.iter().filter_map(|licence| {
        let write = writes.get(licence.result as usize)?.as_ref()?;
        trailing_room(graph, id, licence, reads, write)
    });
    aligned(i64::try_from(trailing.fold(bytes, usize::saturating_add)).unwrap_or(i64::MAX))
}

/// Multiply-adds of a node's kernel: 0 if the operator declares none, or if only a run knows the numbers.
pub fn macs(graph: &Graph, id: NodeId) -> i64 {
    let node = &graph.nodes[id];
    let Some(count) = node.op.def().macs else { return 0 };
    let outs = node.results.iter().map(|v| known_meta(graph, *v)).collect::<Result<Vec<Meta>, OpError>>();
    match (placed_args(graph, id, &[]), outs) {
        (Ok(args), Ok(outs)) => count(&Args(&args), &outs).unwrap_or(0),
        _ => 0,
    }
}

/// Scratch bytes of a result at `write` by a licence [`ReuseKind::Trailing`]; `None` if the result is not on the operand's
/// last cells, or the operator does not allow it.
pub fn trailing_room(
    graph: &Graph,
    id: NodeId,
    licence: &Reuse,
    reads: &[Option<Place>],
    write: &Place,
) -> Option<usize> {
    if licence.kind != ReuseKind::Trailing {
        return None;
    }
    let node = &graph.nodes[id];
    let arg = licence.arg as usize;
    let Some(Arg::Value(v)) = node.args.get(arg) else { return None };
    let read = reads.get(operands_of(&node.args, arg).start)?.as_ref()?;
    let result = node.results.get(licence.result as usize)?;
    let one_type = graph.values[*v].ty.tensor()?.dtype == graph.values[*result].ty.tensor()?.dtype;
    let (from, to) = (&read.layout, &write.layout);
    let end = |l: &Layout| l.offset.saturating_add(l.numel());
    let trails = read.buffer == write.buffer && end(from) == end(to) && to.numel() <= from.numel();
    if !one_type || !trails || !from.is_contiguous() || !to.is_contiguous() {
        return None;
    }
    call_trailing_room(graph, id, reads)
}

/// Scratch bytes of a result on the last cells of an operand, with operands in these places; `None` if the operator does
/// not allow it.
pub fn call_trailing_room(graph: &Graph, id: NodeId, reads: &[Option<Place>]) -> Option<usize> {
    let room = graph.nodes[id].op.def().trailing?;
    room(&Args(&placed_args(graph, id, reads).ok()?))
}
