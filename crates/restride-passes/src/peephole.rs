//! The one place where operators are recognised by name: calls that another value, or a cheaper call, stands for.

use crate::build::Rebuilt;
use crate::simplify::{known, meta, seen};
use restride_ir::{Arg, Dim, Expr, Graph, Layout, Node, NodeId, Op, TensorType, ValueId, ViewOutcome};

/// A value that a call about to be made is equal to, if there is one.
pub fn replace(op: Op, args: &[Arg], graph: &Graph) -> Option<ValueId> {
    match op.name() {
        // `copy(self, src)` is `src` where nothing is converted or stretched.
        "aten.copy.default" => {
            let (Arg::Value(to), Arg::Value(from)) = (&args[0], &args[1]) else { return None };
            let (to, src) = (graph.tensor(*to), graph.tensor(*from));
            let same = to.dtype == src.dtype
                && to.rank() == src.rank()
                && to.layout.sizes.iter().zip(&src.layout.sizes).all(|(a, b)| a.equals(b) == Some(true));
            same.then_some(*from)
        }
        _ => None,
    }
}

/// Whether a call copies its first operand as it is: a padding of nothing.
pub fn copies(node: &Node) -> bool {
    match (node.op.name(), node.args.get(1)) {
        ("aten.constant_pad_nd.default", Some(Arg::Scalars(pads))) => pads.iter().all(|n| n.known() == Some(0)),
        _ => false,
    }
}

/// A `cat` that is only read through a view that tells its operands apart in a dimension of their own, and permutations of
/// that: the same views of the operands, put together in that dimension. `chain` are the views, and the copy that ends them.
/// False if it is none such.
pub fn cat_of_views(new: &mut Rebuilt<'_>, node: &Node, chain: &[NodeId]) -> bool {
    let old = new.old;
    let (&[whole], [view, permutes @ .., _]) = (&node.results[..], chain) else { return false };
    let plan = || {
        let ("aten.cat.default", [Arg::Values(_), Arg::Scalar(dim)]) = (node.op.name(), &node.args[..]) else {
            return None;
        };
        let parts: Vec<ValueId> = node.operands().collect();
        let whole = meta(old, whole)?;
        let dim = whole.layout.dim(dim.known()?).ok()?;
        let like = meta(old, parts[0])?;
        let alike =
            |v: &ValueId| meta(old, *v).is_some_and(|m| m.dtype == whole.dtype && m.layout.sizes == like.layout.sizes);
        let split = meta(old, old.nodes[*view].results[0])?;
        // [.., k n, ..] is seen as [.., k, n, ..], k the number of operands.
        let mut want = whole.layout.sizes.clone();
        want[dim] = parts.len() as i64;
        want.insert(dim + 1, like.layout.sizes[dim]);
        let (_, rows) = seen(old, &old.nodes[*view])?;
        if parts.len() < 2 || !parts.iter().all(alike) || split.layout.sizes != want || !rows.is_contiguous() {
            return None;
        }
        // Where that dimension goes.
        let mut at = dim;
        for id in permutes {
            let (_, layout) = seen(old, &old.nodes[*id])?;
            let from = Layout::contiguous(&want);
            let order: Option<Vec<usize>> = (0..from.rank())
                .map(|d| {
                    let fits = |k: &usize| layout.sizes[*k] == from.sizes[d] && layout.strides[*k] == from.strides[d];
                    let mut found = (0..layout.rank()).filter(fits);
                    found.next().filter(|_| found.next().is_none())
                })
                .collect();
            at = order?[at];
            want = layout.sizes.clone();
        }
        Some((parts, dim, at))
    };
    let Some((parts, dim, at)) = plan() else { return false };
    let last = old.nodes[*permutes.last().unwrap_or(view)].results[0];
    let mut seen_parts = Vec::with_capacity(parts.len());
    for &part in &parts {
        let mut now = new.map[part].expect("operands come first");
        let mut ty = old.tensor(part).clone();
        let Ok(layout) = ty.layout.unsqueeze(dim as i64) else { return false };
        ty.layout = layout;
        let mut b = new.builder(node, part);
        now = b.call("aten.unsqueeze.default", vec![Arg::Value(now), Arg::Scalar(Expr::Int(dim as i64))], ty);
        for id in permutes {
            let mut args = old.nodes[*id].args.clone();
            args[0] = Arg::Value(now);
            let Some(ty) = viewed(b.graph, old.nodes[*id].op, &args) else { return false };
            now = b.node(old.nodes[*id].op, args, [(b.hint.clone(), ty)], &old.nodes[*id].origin)[0];
        }
        seen_parts.push(Some(now));
    }
    let mut b = new.builder(node, last);
    let sizes = old.tensor(last).layout.sizes.clone();
    let ty = TensorType::contiguous(old.tensor(last).dtype, &sizes);
    let args = vec![Arg::Values(seen_parts), Arg::Scalar(Expr::Int(at as i64))];
    let made = b.call("aten.cat.default", args, ty);
    let made = b.declare(made, old.tensor(last));
    // What is in between is read by nobody.
    new.map.set(whole, Some(made));
    for id in chain[..chain.len() - 1].iter() {
        new.map.set(old.nodes[*id].results[0], Some(made));
    }
    true
}

/// Type of a view.
fn viewed(graph: &Graph, op: Op, args: &[Arg]) -> Option<TensorType> {
    let rule = op.def().view?;
    match rule.of(&known(args, |v| meta(graph, v))?).ok()? {
        ViewOutcome::Views(views) => {
            let one = views.first()?;
            Some(TensorType::new(one.dtype, one.layout.map(|n| Expr::Int(*n))))
        }
        _ => None,
    }
}
