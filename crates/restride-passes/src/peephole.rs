//! The one place where operators are recognised by name: calls that another value, or a cheaper call, stands for.

use crate::args::known;
use crate::build::{Builder, Rebuilt};
use crate::simplify::{meta, seen};
use restride_ir::{
    Arg, DType, Dim, Expr, Graph, Layout, Meta, Movement, Node, NodeId, Op, Scalar, TensorType, ValueId, ViewOutcome,
};
use restride_ops::lookup;

/// A value that equals the result of a call about to be made.
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

/// The operator and the arguments of a cheaper call, which makes the first result of this call and no other one. It may replace this
/// call where the program reads no other result.
pub fn first_alone(op: Op, args: &[Arg]) -> Option<(&'static str, Vec<Arg>)> {
    match (op.name(), args) {
        ("aten.max_pool2d_with_indices.default", _) => Some(("aten.max_pool2d.default", args.to_vec())),
        ("aten.max_pool3d_with_indices.default", _) => Some(("aten.max_pool3d.default", args.to_vec())),
        ("aten._native_batch_norm_legit_no_training.default", [statistics @ .., momentum, eps]) => {
            let no = || Arg::Scalar(Expr::from(Scalar::Bool(false)));
            let more = [no(), momentum.clone(), eps.clone(), no()];
            Some(("aten.batch_norm.default", statistics.iter().cloned().chain(more).collect()))
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

/// How far before a padding the border is filled.
const NEAR: usize = 64;

/// Replaces a padding whose operand was just made and has no other reader: the border is filled before the operand, which
/// can then be made in its place (`full`, then a scatter). False for other nodes.
pub fn padding(new: &mut Rebuilt<'_>, node: &Node) -> bool {
    let old = new.old;
    let (true, Some(Arg::Value(x)), Some(Arg::Scalars(pads)), &[r]) =
        (pads(node), node.args.first(), node.args.get(1), &node.results[..])
    else {
        return false;
    };
    let plan = || {
        let (from, to) = (meta(old, *x)?, meta(old, r)?);
        let value = node.args.get(2).and_then(|a| a.scalars().first()).map_or(Some(Scalar::Int(0)), Expr::constant)?;
        let exact = from.dtype.is_float() || matches!(value, Scalar::Int(_)) && from.dtype != DType::Bool;
        let pads: Option<Vec<i64>> = pads.iter().map(Dim::known).collect();
        let pads = pads?;
        let grows = pads.iter().all(|n| *n >= 0) && pads.iter().any(|n| *n > 0) && from.layout.numel() > 0;
        if !exact || !grows || !to.layout.is_contiguous() {
            return None;
        }
        let mut cuts = Vec::new();
        for (k, pair) in pads.chunks(2).enumerate() {
            let d = to.layout.rank().checked_sub(k + 1)?;
            if pair.iter().any(|n| *n > 0) {
                cuts.push((d, pair[0], from.layout.sizes[d]));
            }
        }
        let start = start(&new.graph, new.map[*x]?, new.graph.order.len().saturating_sub(NEAR))?;
        Some((cuts, to.layout, value, start))
    };
    let Some((cuts, whole, value, start)) = plan() else { return false };
    let (src, want) = (new.map[*x].expect("operands come first"), old.tensor(r).clone());
    let mut b = new.builder(node, r);
    let sizes = Arg::Scalars(want.layout.sizes.to_vec());
    let args = vec![sizes, Arg::Scalar(Expr::from(value)), Arg::DType(want.dtype)];
    let border = b.call("aten.full.default", args, want.clone());
    let mut args = vec![Arg::Value(border), Arg::Value(src)];
    let ints = |of: &[i64]| Arg::Scalars(of.iter().map(|n| Expr::Int(*n)).collect());
    // A slice may have any layout.
    let scatter = match cuts[..] {
        [(dim, from, length)] => {
            args.extend([dim as i64, from, from + length].map(|n| Arg::Scalar(Expr::Int(n))));
            "aten.slice_scatter.default"
        }
        _ => {
            let offset = cuts.iter().map(|(d, from, _)| from * whole.strides[*d]).sum();
            let part = meta(old, *x).expect("its sizes are known");
            args.extend([ints(&part.layout.sizes), ints(&whole.strides), Arg::Scalar(Expr::Int(offset))]);
            "aten.as_strided_scatter.default"
        }
    };
    let made = b.call(scatter, args, want);
    let filled = new.graph.order.len() - 2;
    new.graph.order[start..=filled].rotate_right(1);
    new.map.set(r, Some(made));
    true
}

/// Whether a call pads with a constant.
pub fn pads(node: &Node) -> bool {
    node.op.name() == "aten.constant_pad_nd.default"
}

/// The position in the order, from `first` on, of the first node that makes a value: its own, those of its parts, or of the
/// base that it is written into. `None` if that is a view, was made before, or is further away.
fn start(graph: &Graph, v: ValueId, first: usize) -> Option<usize> {
    let found = graph.order[first..].iter().rposition(|id| graph.nodes[*id].results.contains(&v))?;
    let node = &graph.nodes[graph.order[first + found]];
    let def = node.op.def();
    if def.hop.is_some() || node.op.is_view() || node.results.len() != 1 {
        return None;
    }
    let before: Vec<ValueId> = match def.movement {
        Some(Movement::Assemble(_)) => node.operands().collect(),
        Some(Movement::Scatter { base, .. }) => node.args.get(base as usize)?.values().copied().collect(),
        _ => Vec::new(),
    };
    let before = before.into_iter().filter_map(|v| start(graph, v, first));
    Some(before.min().unwrap_or(first + found).min(first + found))
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
    // The values in between have no readers.
    new.map.set(whole, Some(made));
    for id in chain[..chain.len() - 1].iter() {
        new.map.set(old.nodes[*id].results[0], Some(made));
    }
    true
}

/// A `cat` one of whose parts, no smaller than the others together, is a slice of a computed value at the slice's own place, and the
/// last that is read of it: this value, with the other parts written into it. `dying` gives the value that a view is one of, with the
/// view's node, where the view's reader is the last of both. False for other nodes.
pub fn cat_into_part<'a>(
    new: &mut Rebuilt<'a>,
    node: &Node,
    dying: &dyn Fn(ValueId) -> Option<(ValueId, &'a Node)>,
) -> bool {
    let old = new.old;
    let plan = || {
        let ("aten.cat.default", [Arg::Values(_), Arg::Scalar(dim)], &[r]) =
            (node.op.name(), &node.args[..], &node.results[..])
        else {
            return None;
        };
        let whole = meta(old, r)?;
        let dim = whole.layout.dim(dim.known()?).ok()?;
        let (mut parts, mut end) = (Vec::new(), 0);
        for v in node.operands() {
            let part = meta(old, v)?;
            // An empty operand of one dimension joins any others.
            if part.dtype != whole.dtype || part.layout.rank() != whole.layout.rank() {
                return None;
            }
            let from = end;
            end += part.layout.sizes[dim];
            parts.push((v, from, end));
        }
        let rows = Meta { dtype: whole.dtype, layout: Layout::contiguous(&whole.layout.sizes) };
        let kept = |&(v, from, to): &(ValueId, i64, i64)| {
            let (base, view) = dying(v).filter(|_| to > from && 2 * (to - from) >= end)?;
            let given = meta(old, base)?;
            let args = known(&view.args, |v| if v == base { Some(rows.clone()) } else { meta(old, v) })?;
            let ViewOutcome::Views(views) = view.op.def().view?.of(&args).ok()? else { return None };
            let seen = views.get(view.results.iter().position(|r| *r == v)?)?;
            let own = rows.layout.slice(dim as i64, Some(&from), Some(&to), &1).ok()?;
            let at_its_place = seen.dtype == whole.dtype && seen.layout == own;
            (given.dtype == whole.dtype && given.layout.sizes == whole.layout.sizes && at_its_place)
                .then_some((v, base))
        };
        let (kept, base) = parts.iter().find_map(kept)?;
        parts.retain(|(v, from, to)| *v != kept && to > from);
        (!parts.is_empty()).then_some((base, r, dim, parts))
    };
    let Some((base, r, dim, parts)) = plan() else { return false };
    let want = old.tensor(r).clone();
    let new_of = |v: ValueId| new.map[v].expect("operands come first");
    let (base, parts): (_, Vec<_>) = (new_of(base), parts.into_iter().map(|(v, a, b)| (new_of(v), a, b)).collect());
    let mut b = new.builder(node, r);
    let mut made = b.declare(base, &want);
    for (part, from, to) in parts {
        let place = [dim as i64, from, to].map(|n| Arg::Scalar(Expr::Int(n)));
        let args = [Arg::Value(made), Arg::Value(part)].into_iter().chain(place).collect();
        made = b.call("aten.slice_scatter.default", args, want.clone());
    }
    new.map.set(r, Some(made));
    true
}

/// Bytes of the smallest sum that becomes part of a product: a pass over a small one costs little, and less where it is fused.
const LARGE: i64 = 1 << 16;

/// Replaces the sum of a matrix and a product, or a transposed one, by a product with an addend, which is added to each part of the
/// result as it is finished: the same bits. `made` gives the maker of a value that has no other reader. False for other nodes.
pub fn added_product(new: &mut Rebuilt<'_>, node: &Node, made: &dyn Fn(ValueId) -> Option<NodeId>) -> bool {
    let old = new.old;
    let ("aten.add.Tensor", [Arg::Value(x), Arg::Value(y), alpha], &[r]) =
        (node.op.name(), &node.args[..], &node.results[..])
    else {
        return false;
    };
    let Some(to) = meta(old, r) else { return false };
    let large = matches!(to.dtype, DType::F32 | DType::F64) && to.layout.numel() * to.dtype.size() as i64 >= LARGE;
    if !large || alpha.scalars().first().and_then(Expr::constant) != Some(Scalar::Int(1)) {
        return false;
    }
    // The result's own layout is that of the new product, or of its transpose.
    let turned = is_transpose(&to.layout);
    if !turned && !to.layout.is_contiguous() {
        return false;
    }
    let plan = |product: ValueId, addend: ValueId| {
        let other = meta(old, addend)?;
        if other.dtype != to.dtype || other.layout.sizes != to.layout.sizes {
            return None;
        }
        let (mut v, mut flips) = (product, turned);
        loop {
            let maker = &old.nodes[made(v)?];
            if let ("aten.mm.default", [Arg::Value(a), Arg::Value(b)]) = (maker.op.name(), &maker.args[..]) {
                return Some((addend, *a, *b, flips));
            }
            let (base, layout) = seen(old, maker)?;
            flips ^= match layout.is_contiguous() {
                true if layout.sizes == meta(old, base)?.layout.sizes => false,
                false if is_transpose(&layout) => true,
                _ => return None,
            };
            v = base;
        }
    };
    let Some((addend, a, b, flips)) = plan(*y, *x).or_else(|| plan(*x, *y)) else { return false };
    let [addend, a, b] = [addend, a, b].map(|v| new.map[v].expect("operands come first"));
    let want = old.tensor(r).clone();
    let mut builder = new.builder(node, r);
    let t = |builder: &mut Builder<'_>, v: ValueId| {
        let args = vec![Arg::Value(v)];
        let ty = viewed(builder.graph, lookup("aten.t.default")?, &args)?;
        Some(builder.call("aten.t.default", args, ty))
    };
    let build = |builder: &mut Builder<'_>| {
        let (a, b) = if flips { (t(builder, b)?, t(builder, a)?) } else { (a, b) };
        let addend = if turned { t(builder, addend)? } else { addend };
        let mut sizes = want.layout.sizes.clone();
        if turned {
            sizes.reverse();
        }
        let args = vec![Arg::Value(addend), Arg::Value(a), Arg::Value(b)];
        let sum = builder.call("aten.addmm.default", args, TensorType::contiguous(want.dtype, &sizes));
        let sum = if turned { t(builder, sum)? } else { sum };
        Some(builder.declare(sum, &want))
    };
    let Some(sum) = build(&mut builder) else { return false };
    new.map.set(r, Some(sum));
    true
}

/// Whether a matrix is stored column by column, without gaps, and not row by row as well.
fn is_transpose(layout: &Layout) -> bool {
    layout.rank() == 2 && !layout.is_contiguous() && layout.transpose(0, 1).is_ok_and(|t| t.is_contiguous())
}

/// Whether each element of a call's result is one of argument 0, which its other arguments choose.
pub fn gathers(op: Op) -> bool {
    matches!(op.name(), "aten.index.Tensor" | "aten.index_select.default")
}

/// Whether a call adds values.
pub fn adds(node: &Node) -> bool {
    node.op.name() == "aten.add.Tensor"
}

/// Type of a view.
fn viewed(graph: &Graph, op: Op, args: &[Arg]) -> Option<TensorType> {
    let rule = op.def().view?;
    match rule.of(&known(args, |v| meta(graph, v))?).ok()? {
        ViewOutcome::Views(views) => views.into_iter().next().map(TensorType::from),
        _ => None,
    }
}
