//! Computes only the part of a value that the program reads, where this part is small.
//!
//! `clone(slice(add(x, y)))` is `add(slice(x), slice(y))`, and an index of a sum is the sum of the indexed operands. In backward programs,
//! the gradient of a cache is a sum over the whole cache, and the program reads only the rows that it wrote. Every element keeps its bits.

use crate::args::known;
use crate::build::Rebuilt;
use crate::peephole;
use crate::simplify::{meta, same_order};
use restride_ir::{Arg, Args, DType, Graph, Node, NodeId, Op, OpDef, TensorType, ValueId, ViewOutcome};

/// Fewest bytes of a value that is not computed as a whole.
const LARGE: i64 = 1 << 14;
/// Least ratio of the elements of a value to those of its part.
const TIMES: i64 = 4;
/// Most calls between a value's maker and its reader: the maker's operands live until the reader runs.
const NEAR: usize = 32;
/// Longest chain of calls that are computed in part.
const DEPTH: u32 = 16;

/// Whether a call, a view or a gather, gives a small part of a large value.
pub fn takes(graph: &Graph, node: &Node) -> bool {
    let def = node.op.def();
    let plain = is_plain_view(def) || peephole::gathers(node.op);
    let (true, Some(Arg::Value(whole)), &[part]) = (plain, node.args.first(), &node.results[..]) else { return false };
    let (Some(from), Some(to)) = (meta(graph, *whole), meta(graph, part)) else { return false };
    let (cells, bytes) = (from.layout.numel(), from.dtype.size() as i64);
    from.dtype == to.dtype
        && to.layout.rank() > 0
        && cells * bytes >= LARGE
        && to.layout.numel() > 0
        && to.layout.numel() * TIMES <= cells
}

/// A view of argument 0 that a rule decides, whatever strides the argument has.
fn is_plain_view(def: &OpDef) -> bool {
    def.view.is_some() && def.base == 0 && def.math.is_none() && !(def.metadata || def.strided || def.asks_for_strides)
}

/// Whether a call computes each element by itself, and fails on none: an element that the program does not read may be the one
/// that fails.
pub fn is_by_element(def: &OpDef, to: DType) -> bool {
    let fails = def.fails.at(to);
    def.pointwise && def.infer.is_some() && def.hop.is_none() && !(def.random || def.effectful || def.strided || fails)
}

/// Replaces a gather, or the copy of a view, of a value whose maker works element by element, by the maker's call on the same part of
/// its operands. `made` gives the maker of a value that has no other reader. False for other nodes.
pub fn part(new: &mut Rebuilt<'_>, node: &Node, made: &dyn Fn(ValueId) -> Option<NodeId>) -> bool {
    let old = new.old;
    let &[r] = &node.results[..] else { return false };
    let plan = || {
        let taker = match peephole::gathers(node.op) {
            true => node,
            false => {
                let (x, ..) = same_order(old, node)?;
                Some(&old.nodes[made(x)?]).filter(|n| is_plain_view(n.op.def()))?
            }
        };
        let Arg::Value(whole) = taker.args[0] else { return None };
        let maker = made(whole).filter(|_| takes(old, taker))?;
        operands(old, maker)?;
        let last =
            new.map[whole].and_then(|v| new.graph.order.iter().rev().take(NEAR).find(|n| makes(&new.graph, **n, v)));
        last.map(|_| (taker, whole))
    };
    let Some((taker, whole)) = plan() else { return false };
    let Some(value) = narrowed(new, taker, whole, made, 0) else { return false };
    let want = old.tensor(r).clone();
    let value = new.builder(node, r).reshape(value, want);
    new.map.set(r, Some(value));
    true
}

fn makes(graph: &Graph, node: NodeId, v: ValueId) -> bool {
    graph.nodes[node].results.contains(&v)
}

/// The tensors that a call reads element by element: each element of the result needs one element of each. Single numbers are left out;
/// `None` for other calls.
fn operands(graph: &Graph, node: NodeId) -> Option<Vec<ValueId>> {
    let node = &graph.nodes[node];
    let &[r] = &node.results[..] else { return None };
    let to = meta(graph, r)?;
    if let Some((x, from, _)) = same_order(graph, node) {
        return (from.layout.sizes == to.layout.sizes).then(|| vec![x]);
    }
    let mut out = Vec::new();
    for v in node.operands().filter(|_| is_by_element(node.op.def(), to.dtype)) {
        let from = meta(graph, v)?;
        match from.layout.sizes == to.layout.sizes {
            true => out.push(v),
            false if from.layout.rank() == 0 => {}
            false => return None,
        }
    }
    (!out.is_empty()).then_some(out)
}

/// The part of an old value that a call takes: computed of parts, or taken of the new value.
fn narrowed(
    new: &mut Rebuilt<'_>,
    taker: &Node,
    v: ValueId,
    made: &dyn Fn(ValueId) -> Option<NodeId>,
    depth: u32,
) -> Option<ValueId> {
    let old = new.old;
    let by = made(v).filter(|_| depth < DEPTH).and_then(|m| Some((m, operands(old, m)?)));
    let Some((maker, wholes)) = by else {
        let mut args = new.args(taker);
        args[0] = Arg::Value(new.map[v]?);
        let ty = result(&new.graph, taker.op, &args)?;
        return Some(added(new, taker, v, args, ty));
    };
    let parts: Option<Vec<ValueId>> = wholes.iter().map(|x| narrowed(new, taker, *x, made, depth + 1)).collect();
    let (maker, parts) = (&old.nodes[maker], parts?);
    if same_order(old, maker).is_some() {
        return parts.first().copied();
    }
    let now = |x: &ValueId| wholes.iter().position(|w| w == x).map(|k| parts[k]).or(new.map[*x]);
    let args: Option<Vec<Arg>> =
        maker.args.iter().map(|a| a.try_map(|x| now(x).ok_or(()), |e| Ok(e.clone())).ok()).collect();
    let args = args?;
    let ty = result(&new.graph, maker.op, &args).filter(|ty| ty.dtype == old.tensor(v).dtype)?;
    Some(added(new, maker, v, args, ty))
}

/// A new call of a node's operator, named after an old value.
pub fn added(new: &mut Rebuilt<'_>, node: &Node, named: ValueId, args: Vec<Arg>, ty: TensorType) -> ValueId {
    let mut builder = new.builder(node, named);
    let hint = builder.hint.clone();
    builder.node(node.op, args, [(hint, ty)], &node.origin)[0]
}

/// The type of the one result of a call.
pub fn result(graph: &Graph, op: Op, args: &[Arg]) -> Option<TensorType> {
    let args = known(args, |v| meta(graph, v))?;
    let def = op.def();
    let types = match (def.view, def.infer) {
        (Some(rule), _) => match rule.of(&args).ok()? {
            ViewOutcome::Views(views) => views,
            _ => return None,
        },
        (None, Some(infer)) => infer(&Args(&args)).ok()?,
        (None, None) => return None,
    };
    match &types[..] {
        [one] => Some(TensorType::from(one.clone())),
        _ => None,
    }
}
