//! Scratch and multiply-adds of kernels, from the declarations of their operators.

use crate::{
    Arg, Args, Graph, GraphId, IdArena, Kernel, Layout, Licence, Meta, Node, NodeId, OpDef, OpError, Place, ReuseKind,
    Scalar, Tiling, ValueId, aligned, fused_body, fused_head, known_meta,
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
pub fn scratch_bytes(
    graphs: &IdArena<GraphId, Graph>,
    graph: &Graph,
    id: NodeId,
    reads: &[Option<Place>],
    writes: &[Option<Place>],
) -> i64 {
    let node = &graph.nodes[id];
    if !node.op.def().fused && !matches!(node.op.def().kernel, Kernel::Fixed(_) | Kernel::Collective(_)) {
        return 0;
    }
    // Most operators declare none: their arguments need not be gathered.
    if called(graphs, node).is_none_or(|call| call.op.def().scratch.is_none()) {
        return 0;
    }
    let Ok(args) = placed_args(graph, id, reads) else { return 0 };
    let outs = node.results.iter().enumerate().map(|(i, v)| placed(graph, *v, writes.get(i)));
    let Ok(outs) = outs.collect::<Result<Vec<Meta>, OpError>>() else { return 0 };
    let Some(bytes) = call_scratch(graphs, node, &args, &outs) else { return 0 };
    aligned(i64::try_from(bytes.unwrap_or(0)).unwrap_or(i64::MAX))
}

/// Scratch bytes of a call with arguments and results of these types and layouts: those of its operator, or of the head of its body.
/// `None` if it declares none.
pub fn call_scratch(
    graphs: &IdArena<GraphId, Graph>,
    node: &Node,
    args: &[Arg<Meta, Scalar>],
    outs: &[Meta],
) -> Option<Result<usize, OpError>> {
    asked(graphs, node, args, outs, |def| def.scratch)
}

/// Picoseconds of a call with arguments and results of these types and layouts: those of its operator, or of the head of its body.
/// `None` if it declares none.
pub fn call_layout_time(
    graphs: &IdArena<GraphId, Graph>,
    node: &Node,
    args: &[Arg<Meta, Scalar>],
    outs: &[Meta],
) -> Option<Result<i64, OpError>> {
    asked(graphs, node, args, outs, |def| def.layout_time)
}

/// The call whose declaration counts: the node itself, or the first call of its body. `None` for an empty body.
fn called<'a>(graphs: &'a IdArena<GraphId, Graph>, node: &'a Node) -> Option<&'a Node> {
    match fused_body(node).and_then(|b| graphs.get(b)) {
        Some(body) => body.order.first().map(|id| &body.nodes[*id]),
        None => Some(node),
    }
}

/// What a declaration says of a call, or of the head of its body.
fn asked<T>(
    graphs: &IdArena<GraphId, Graph>,
    node: &Node,
    args: &[Arg<Meta, Scalar>],
    outs: &[Meta],
    declared: impl Fn(&'static OpDef) -> Option<fn(&Args<'_, Meta>, &[Meta]) -> Result<T, OpError>>,
) -> Option<Result<T, OpError>> {
    let call = called(graphs, node)?;
    let f = declared(call.op.def())?;
    let Some(body) = fused_body(node).and_then(|b| graphs.get(b)) else {
        return Some(f(&Args(args), outs));
    };
    let tiling = Tiling::of(body).ok()?;
    let head = fused_head(body, &tiling).ok().flatten()?;
    let given: Vec<&Meta> = args.iter().flat_map(Arg::values).collect();
    let operand = |v: &ValueId| {
        let at = body.inputs.iter().position(|i| i == v);
        at.and_then(|k| given.get(k)).map(|m| Meta::clone(m)).ok_or_else(|| OpError::new("an operand of no head"))
    };
    let number = |e: &crate::Expr| e.constant().ok_or_else(|| OpError::new("a number that is not known"));
    let own = call.args.iter().map(|a| a.try_map(operand, number)).collect::<Result<Vec<_>, OpError>>();
    let mut out = known_meta(body, head.result).ok()?;
    out.layout = head.place(&outs.last()?.layout, &out.layout.sizes);
    Some(own.and_then(|own| f(&Args(&own), &[out])))
}

/// Multiply-adds of a node's kernel: 0 if the operator declares none, or if only a run knows the numbers.
pub fn macs(graphs: &IdArena<GraphId, Graph>, graph: &Graph, id: NodeId) -> i64 {
    let node = &graph.nodes[id];
    if let Some(body) = fused_body(node).and_then(|b| graphs.get(b)) {
        return body.order.iter().map(|id| macs(graphs, body, *id)).sum();
    }
    let Some(count) = node.op.def().macs else { return 0 };
    let outs = node.results.iter().map(|v| known_meta(graph, *v)).collect::<Result<Vec<Meta>, OpError>>();
    match (placed_args(graph, id, &[]), outs) {
        (Ok(args), Ok(outs)) => count(&Args(&args), &outs).unwrap_or(0),
        _ => 0,
    }
}

/// Whether a result may be at `write` by a licence [`ReuseKind::Trailing`]: on the operand's last cells, where the operator allows it.
pub fn may_trail(graph: &Graph, id: NodeId, licence: &Licence, reads: &[Option<Place>], write: &Place) -> bool {
    let node = &graph.nodes[id];
    let dtype = |v: ValueId| graph.values[v].ty.tensor().map(|t| t.dtype);
    let (Some(v), Some(Some(read)), Some(&result)) =
        (node.operands().nth(licence.operand), reads.get(licence.operand), node.results.get(licence.result))
    else {
        return false;
    };
    let (from, to) = (&read.layout, &write.layout);
    let end = |l: &Layout| l.offset.saturating_add(l.numel());
    let trails = read.buffer == write.buffer && end(from) == end(to) && to.numel() <= from.numel();
    licence.kind == ReuseKind::Trailing
        && dtype(v).is_some()
        && dtype(v) == dtype(result)
        && trails
        && from.is_contiguous()
        && to.is_contiguous()
        && call_may_trail(graph, id, reads)
}

/// Whether the operator allows a result on the last cells of an operand, with operands in these places.
pub fn call_may_trail(graph: &Graph, id: NodeId, reads: &[Option<Place>]) -> bool {
    let args = placed_args(graph, id, reads).ok();
    args.zip(graph.nodes[id].op.def().trailing).is_some_and(|(args, may)| may(&Args(&args)))
}
