//! Copies that another order of nodes saves, in lowered programs, whose sizes are known.
//!
//! A reshape that strides cannot express is a copy. If its reader or its operand's maker takes rows one by one (`by_row`, a
//! `linear`), that operator can work on the other shape as well, and the reshape becomes a view of a fresh result or of its
//! operand:
//!
//! ```text
//! linear(reshape(permute(x)))           is  view(linear(permute(x)))
//! reshape(permute(view(linear(x))))     is  reshape(permute(linear(view(x)))), whose result can be made where the copy is
//! ```
//!
//! The same holds for operators on single matrices (`by_batch`): keys repeated for several heads, `reshape(expand(k))`, are
//! read as they are repeated, without a copy of the cache.
//!
//! The operand of a padding is made in the middle of its border (`peephole.rs`). A copied view of a `cat` becomes a `cat`
//! of views, whose operands can be made in the copy (`peephole.rs`: PyTorch's channel shuffle). The sum of a product and another
//! matrix becomes a product with an addend (`peephole.rs`): one pass less over large gradients. A `cat` with a slice of a
//! computed value at its own place becomes this value with the other parts written into it (`peephole.rs`: boxes of detection
//! heads). Of a value that is read in part alone, only this part is computed (`parts.rs`), and the calls on elements behind a `cat` are
//! computed part by part (`cat_parts.rs`). Every result keeps its bits.

use crate::args::known;
use crate::build::{Rebuilt, rebuild};
use crate::cat_parts::by_parts;
use crate::place::ends;
use crate::{dce, parts, peephole, scatters};
use restride_ir::{
    Arg, CollectTree, DType, Expr, Graph, GraphId, Layout, Meta, Movement, Node, NodeId, Program, Result, Table,
    TensorType, ValueId, ViewOutcome,
};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Moves reshapes past operators on rows, and views into assembled results, where that saves a copy.
///
/// # Errors
/// A valid lowered program gives none.
pub fn simplify(program: &Program) -> Result<Program> {
    let merged = scatters::merge(program)?;
    let program = reshapes(&merged)?.map_or(merged, Cow::Owned);
    let uses: BTreeMap<GraphId, Uses> = program.graphs.iter().map(|(id, g)| (id, Uses::of(g))).collect_map();
    if !uses.values().any(|u| u.something) {
        return by_parts(program.into_owned());
    }
    let ends: BTreeMap<GraphId, Table<ValueId, usize>> =
        program.graphs.iter().map(|(id, g)| (id, read_until(g))).collect_map();
    let mut out = rebuild(&program, |new, node| {
        if node.results.iter().any(|r| new.map[*r].is_some()) {
            return Ok(());
        }
        let (uses, ends) = (&uses[&new.id], &ends[&new.id]);
        let old = new.old;
        let alone = |v: ValueId| uses.maker[v].filter(|_| uses.count[v] == 1);
        let done = copy(new, node)
            || parts::part(new, node, &alone)
            || rows_before(new, node, uses)
            || rows_after(new, node, uses)
            || batches(new, node, uses)
            || padding(new, node, uses)
            || peephole::added_product(new, node, &alone)
            || peephole::cat_into_part(new, node, &|part| uses.dies_with(old, ends, part))
            || {
                let chain = cat_chain(old, node, uses);
                chain.is_some_and(|chain| peephole::cat_of_views(new, node, &chain))
            };
        if !done {
            let args = new.args(node);
            new.keep(node, args);
        }
        Ok(())
    })?;
    dce(&mut out);
    by_parts(out)
}

/// For each value, the position of the last node that reads it or a view of it; past the last node where outputs do.
fn read_until(graph: &Graph) -> Table<ValueId, usize> {
    let mut last_use = Table::with_capacity(graph.values.len());
    for (at, (_, node)) in graph.ordered().enumerate() {
        node.operands().for_each(|v| last_use.set(v, at));
    }
    graph.output_values().for_each(|v| last_use.set(v, graph.order.len()));
    ends(graph, &last_use)
}

/// A copy that is only read in another shape becomes a reshape: decomposed programs have `clone`, then `_unsafe_view`. A
/// `copy` with its target's sizes is such a copy. Where the program reads the first result of a call alone, an operator that makes
/// only this result replaces the call's: decomposed programs have `max_pool2d_with_indices`. `None` where nothing changes.
fn reshapes(program: &Program) -> Result<Option<Program>> {
    let uses: BTreeMap<GraphId, Uses> = program.graphs.iter().map(|(id, g)| (id, Uses::of(g))).collect_map();
    let found = |id: GraphId, graph: &Graph| {
        graph.ordered().any(|(_, n)| {
            uses[&id].copy_seen(graph, n).is_some()
                || peephole::replace(n.op, &n.args, graph).is_some()
                || uses[&id].alone(n).is_some()
        })
    };
    if !program.graphs.iter().any(|(id, graph)| found(id, graph)) {
        return Ok(None);
    }
    let mut out = rebuild(program, |new, node| {
        let args = new.args(node);
        if uses[&new.id].alone(node).is_some()
            && let Some((op, args)) = peephole::first_alone(node.op, &args)
        {
            let r = node.results[0];
            let ty = new.old.tensor(r).clone();
            let made = new.builder(node, r).call(op, args, ty);
            new.map.set(r, Some(made));
            return Ok(());
        }
        match uses[&new.id].copy_seen(new.old, node) {
            Some(x) => {
                let (x, r) = (new.map[x].expect("operands come first"), node.results[0]);
                let ty = new.old.tensor(r).clone();
                let sizes = Arg::Scalars(ty.layout.sizes.to_vec());
                let made = new.builder(node, r).call("aten.reshape.default", vec![Arg::Value(x), sizes], ty);
                new.map.set(r, Some(made));
            }
            None => match peephole::replace(node.op, &args, &new.graph) {
                Some(value) => {
                    let ty = new.old.tensor(node.results[0]).clone();
                    let made = new.builder(node, node.results[0]).declare(value, &ty);
                    new.map.set(node.results[0], Some(made));
                }
                None => new.keep(node, args),
            },
        }
        Ok(())
    })?;
    dce(&mut out);
    Ok(Some(out))
}

/// A call that copies its operand unchanged becomes the operand.
fn copy(new: &mut Rebuilt<'_>, node: &Node) -> bool {
    let (true, Some(Arg::Value(v)), &[r]) = (peephole::copies(node), node.args.first(), &node.results[..]) else {
        return false;
    };
    let (now, want) = (new.map[*v].expect("operands come first"), new.old.tensor(r).clone());
    let made = new.builder(node, r).call("aten.clone.default", vec![Arg::Value(now)], want);
    new.map.set(r, Some(made));
    true
}

/// A padded value without other readers is made in its place.
fn padding(new: &mut Rebuilt<'_>, node: &Node, uses: &Uses) -> bool {
    let only = matches!(node.args.first(), Some(Arg::Value(v)) if uses.only(*v).is_some());
    only && peephole::padding(new, node)
}

/// Who makes and who reads each value.
pub(crate) struct Uses {
    pub(crate) maker: Table<ValueId, Option<NodeId>>,
    /// How often a value is read; outputs count.
    pub(crate) count: Table<ValueId, u32>,
    /// The last reader.
    pub(crate) by: Table<ValueId, Option<NodeId>>,
    /// Whether the program has a copy, a sum, a small part or an assembled result at all.
    something: bool,
}

impl Uses {
    pub(crate) fn of(graph: &Graph) -> Uses {
        let values = graph.values.len();
        let (maker, by) = (Table::with_capacity(values), Table::with_capacity(values));
        let mut uses = Uses { maker, count: Table::with_capacity(values), by, something: false };
        for (id, node) in graph.ordered() {
            for v in node.operands() {
                *uses.count.entry(v) += 1;
                uses.by.set(v, Some(id));
            }
            node.results.iter().for_each(|r| uses.maker.set(*r, Some(id)));
            uses.something |= matches!(node.op.def().movement, Some(Movement::Assemble(_)))
                || peephole::pads(node)
                || peephole::adds(node)
                || parts::takes(graph, node)
                || reshaped(graph, node).is_some();
        }
        graph.output_values().for_each(|v| *uses.count.entry(v) += 1);
        uses
    }

    /// The computed value that a view is one of, with the view's node, where the view's one reader is the last of both.
    fn dies_with<'a>(
        &self,
        graph: &'a Graph,
        ends: &Table<ValueId, usize>,
        view: ValueId,
    ) -> Option<(ValueId, &'a Node)> {
        let node = &graph.nodes[self.maker[view].filter(|_| self.count[view] == 1)?];
        let Some(Arg::Value(whole)) = node.args.get(node.op.def().base as usize) else { return None };
        let maker = &graph.nodes[self.maker[*whole]?];
        let computed = !maker.op.is_view() && maker.op.def().hop.is_none() && maker.results.len() == 1;
        (node.op.is_view() && computed && ends[*whole] == ends[view]).then_some((*whole, node))
    }

    /// The value that a copy in another shape, read once, copies.
    fn copied_from(&self, graph: &Graph, v: ValueId) -> Option<ValueId> {
        let maker = self.maker[v].filter(|_| self.count[v] == 1)?;
        reshaped(graph, &graph.nodes[maker])
    }

    /// The value behind a copy that only this view reads, in another shape of the same order; views between the two keep
    /// the order.
    fn copy_seen(&self, graph: &Graph, node: &Node) -> Option<ValueId> {
        let mut view = node;
        loop {
            let (base, _) = seen(graph, view).filter(|(_, rows)| rows.is_contiguous())?;
            let maker = &graph.nodes[self.maker[base].filter(|_| self.count[base] == 1)?];
            match same_order(graph, maker) {
                Some((x, from, to)) => {
                    return (to.layout.is_contiguous() && !from.layout.sizes.contains(&0)).then_some(x);
                }
                None => view = maker,
            }
        }
    }

    /// The cheaper call that gives the first result of a node, where no other one is read.
    fn alone(&self, node: &Node) -> Option<(&'static str, Vec<Arg>)> {
        let (_, others) = node.results.split_first()?;
        others.iter().all(|r| self.count[*r] == 0).then(|| peephole::first_alone(node.op, &node.args))?
    }

    /// The one reader of a value.
    pub(crate) fn only(&self, v: ValueId) -> Option<NodeId> {
        if self.count[v] == 1 { self.by[v] } else { None }
    }
}

/// Type of a value, its sizes known.
pub(crate) fn meta(graph: &Graph, v: ValueId) -> Option<Meta> {
    graph.values[v].ty.tensor()?.known()
}

/// Operand of a node that only copies, with its type and the result's: the same elements in the same order.
pub(crate) fn same_order(graph: &Graph, node: &Node) -> Option<(ValueId, Meta, Meta)> {
    let (Some(Movement::Same), Some(Arg::Value(x)), &[r]) =
        (node.op.def().movement, node.args.first(), &node.results[..])
    else {
        return None;
    };
    let (from, to) = (meta(graph, *x)?, meta(graph, r)?);
    (from.dtype == to.dtype).then_some((*x, from, to))
}

/// Operand of a node that copies into another shape.
fn reshaped(graph: &Graph, node: &Node) -> Option<ValueId> {
    let (x, from, to) = same_order(graph, node)?;
    from.layout.view(&to.layout.sizes).is_none().then_some(x)
}

/// The layout of a view of one result on a row-major operand; `None` if the node is no such view, or converts.
pub(crate) fn seen(graph: &Graph, node: &Node) -> Option<(ValueId, Layout)> {
    let def = node.op.def();
    let (Some(rule), &[r]) =
        (def.view.filter(|_| def.math.is_none() && !def.metadata && !def.strided), &node.results[..])
    else {
        return None;
    };
    let Some(Arg::Value(base)) = node.args.get(def.base as usize) else { return None };
    let (from, to) = (meta(graph, *base)?, meta(graph, r)?);
    if from.layout.numel() != to.layout.numel() {
        return None;
    }
    let rows = Meta { dtype: from.dtype, layout: Layout::contiguous(&from.layout.sizes) };
    let args = known(&node.args, |v| if v == *base { Some(rows.clone()) } else { meta(graph, v) })?;
    match rule.of(&args).ok()? {
        ViewOutcome::Views(views) => match &views[..] {
            [one] if one.dtype == from.dtype => Some((*base, one.layout.clone())),
            _ => None,
        },
        _ => None,
    }
}

fn with_last(sizes: &[i64], last: i64) -> Vec<i64> {
    let mut sizes = sizes.to_vec();
    if let Some(n) = sizes.last_mut() {
        *n = last;
    }
    sizes
}

fn contiguous(dtype: DType, sizes: &[i64]) -> TensorType {
    TensorType::contiguous(dtype, &sizes.iter().map(|n| Expr::Int(*n)).collect::<Vec<_>>())
}

/// Whether two shapes are the same rows.
fn same_rows(a: &[i64], b: &[i64]) -> bool {
    a.len() >= 2 && b.len() >= 2 && a.last() == b.last() && !a.contains(&0)
}

/// `linear(reshape(x))`: the rows of `x` are taken where they are.
fn rows_before(new: &mut Rebuilt<'_>, node: &Node, uses: &Uses) -> bool {
    let old = new.old;
    let (true, Some(Arg::Value(v)), &[y]) = (node.op.def().by_row, node.args.first(), &node.results[..]) else {
        return false;
    };
    let copied = uses.copied_from(old, *v);
    let (Some(x), Some(shape), Some(result)) = (copied, meta(old, *v), meta(old, y)) else { return false };
    let Some(given) = meta(old, x) else { return false };
    let last = result.layout.sizes.last().copied();
    let (true, Some(last)) = (same_rows(&given.layout.sizes, &shape.layout.sizes), last) else { return false };
    if result.layout.rank() != shape.layout.rank() {
        return false;
    }
    let mut args = new.args(node);
    args[0] = Arg::Value(new.map[x].expect("operands come first"));
    let want = old.tensor(y).clone();
    let mut b = new.builder(node, y);
    let ty = contiguous(result.dtype, &with_last(&given.layout.sizes, last));
    let made = b.node(node.op, args, [(b.hint.clone(), ty)], &node.origin)[0];
    let made = b.reshape(made, want);
    new.map.set(y, Some(made));
    true
}

/// `view(linear(x))` that is permuted and copied: the operand is looked at in the view's shape, so that the result can be
/// made where the copy is.
fn rows_after(new: &mut Rebuilt<'_>, node: &Node, uses: &Uses) -> bool {
    let old = new.old;
    let (true, Some(Arg::Value(x)), &[y]) = (node.op.def().by_row, node.args.first(), &node.results[..]) else {
        return false;
    };
    let viewed = || {
        let view = &old.nodes[uses.only(y)?];
        let (_, layout) = seen(old, view).filter(|(base, l)| *base == y && l.is_contiguous())?;
        let v = view.results[0];
        let permuted = &old.nodes[uses.only(v)?];
        let (_, seen) = seen(old, permuted).filter(|(base, l)| *base == v && !l.is_contiguous())?;
        let copied = uses.only(permuted.results[0])?;
        reshaped(old, &old.nodes[copied]).filter(|_| seen.rank() == layout.rank())?;
        Some((v, layout.sizes.to_vec()))
    };
    let (Some((v, sizes)), Some(given), Some(result)) = (viewed(), meta(old, *x), meta(old, y)) else { return false };
    let rows = with_last(&sizes, given.layout.sizes.last().copied().unwrap_or(0));
    let kept = sizes.last() == result.layout.sizes.last();
    if !kept
        || !same_rows(&given.layout.sizes, &rows)
        || result.layout.rank() != given.layout.rank()
        || !given.layout.is_contiguous()
    {
        return false;
    }
    let mut args = new.args(node);
    let Arg::Value(x) = args[0] else { return false };
    let want = old.tensor(v).clone();
    let mut b = new.builder(node, y);
    args[0] = Arg::Value(b.reshape(x, contiguous(given.dtype, &rows)));
    let made = b.node(node.op, args, [(b.hint.clone(), want)], &node.origin)[0];
    new.map.set(v, Some(made));
    // The old value has no other reader and is not made.
    new.map.set(y, Some(made));
    true
}

/// Matrices of a reshaped batch, read with their own dimensions.
fn batches(new: &mut Rebuilt<'_>, node: &Node, uses: &Uses) -> bool {
    let old = new.old;
    let (Some(by), &[y]) = (node.op.def().by_batch, &node.results[..]) else { return false };
    let Some(result) = meta(old, y) else { return false };
    let source = |v: ValueId| {
        let x = uses.copied_from(old, v)?;
        let (given, shape) = (meta(old, x)?, meta(old, v)?);
        let same = given.layout.rank() > 2 && shape.layout.rank() > 2 && tail(&given.layout) == tail(&shape.layout);
        same.then_some((x, given))
    };
    let plan = || {
        let each: Option<Vec<ValueId>> = by
            .each
            .iter()
            .map(|i| if let Some(Arg::Value(v)) = node.args.get(*i as usize) { Some(*v) } else { None })
            .collect();
        let each = each?;
        let outer = outer(&result.layout)?.to_vec();
        let metas: Option<Vec<Meta>> = each.iter().map(|v| meta(old, *v)).collect();
        if outer.is_empty() || metas?.iter().any(|m| self::outer(&m.layout) != Some(&outer[..])) || outer.contains(&0) {
            return None;
        }
        let (_, like) = each.iter().find_map(|v| source(*v))?;
        let wide = self::outer(&like.layout)?.to_vec();
        let groups = groups(&outer, &wide)?;
        let mut changed: Vec<(usize, ValueId, Vec<i64>)> = Vec::new();
        for (&at, &v) in by.each.iter().zip(&each) {
            let have = meta(old, v)?;
            let sizes: Vec<i64> = wide.iter().chain(tail(&have.layout)).copied().collect();
            match source(v).filter(|(_, given)| given.layout.sizes[..] == sizes[..]) {
                Some((x, _)) => changed.push((at as usize, x, sizes)),
                None => {
                    have.layout.view(&sizes)?;
                    changed.push((at as usize, v, sizes));
                }
            }
        }
        for &at in by.broadcast {
            let Some(Arg::Value(v)) = node.args.get(at as usize) else { continue };
            let have = meta(old, *v)?;
            let own = self::outer(&have.layout)?;
            let mut sizes = Vec::new();
            for (n, group) in own.iter().zip(&groups[outer.len().checked_sub(own.len())?..]) {
                sizes.extend(group.iter().map(|g| if *n == 1 { 1 } else { *g }));
            }
            sizes.extend(tail(&have.layout));
            have.layout.view(&sizes)?;
            changed.push((at as usize, *v, sizes));
        }
        Some((wide, changed))
    };
    let Some((wide, changed)) = plan() else { return false };
    let mut args = new.args(node);
    let mapped: Vec<_> = changed.iter().map(|(_, v, _)| new.map[*v].expect("operands come first")).collect();
    let want = old.tensor(y).clone();
    let mut b = new.builder(node, y);
    for ((at, v, sizes), now) in changed.into_iter().zip(mapped) {
        b.hint = old.values[v].name.clone();
        let dtype = old.tensor(v).dtype;
        let same = meta(b.graph, now).is_some_and(|m| m.layout.sizes[..] == sizes[..]);
        args[at] = Arg::Value(if same { now } else { b.reshape(now, contiguous(dtype, &sizes)) });
    }
    b.hint = old.values[y].name.clone();
    let sizes: Vec<i64> = wide.iter().chain(tail(&result.layout)).copied().collect();
    let made = b.node(node.op, args, [(b.hint.clone(), contiguous(result.dtype, &sizes))], &node.origin)[0];
    let made = b.reshape(made, want);
    new.map.set(y, Some(made));
    true
}

/// The dimensions before the last two.
fn outer(l: &Layout) -> Option<&[i64]> {
    l.sizes.len().checked_sub(2).map(|n| &l.sizes[..n])
}

/// The last two dimensions.
fn tail(l: &Layout) -> &[i64] {
    &l.sizes[l.sizes.len().saturating_sub(2)..]
}

/// For each dimension those that it is split into; `None` where others than these are needed.
fn groups(whole: &[i64], split: &[i64]) -> Option<Vec<Vec<i64>>> {
    let mut rest = split.iter().copied().peekable();
    let mut out: Vec<Vec<i64>> = Vec::with_capacity(whole.len());
    for &n in whole {
        let (mut group, mut product) = (Vec::new(), 1i64);
        while group.is_empty() || product < n {
            let next = rest.next()?;
            product = product.checked_mul(next)?;
            group.push(next);
        }
        if product != n {
            return None;
        }
        out.push(group);
    }
    // Dimensions of one at the end belong to the last.
    for one in rest {
        (one == 1).then_some(())?;
        out.last_mut()?.push(1);
    }
    Some(out)
}

/// The views from a `cat` without other readers to a copy in another shape: nodes, the last of them the copy.
fn cat_chain(graph: &Graph, node: &Node, uses: &Uses) -> Option<Vec<NodeId>> {
    if !matches!(node.op.def().movement, Some(Movement::Assemble(_))) {
        return None;
    }
    let mut chain = Vec::new();
    let mut at = *node.results.first()?;
    loop {
        let next = uses.only(at)?;
        chain.push(next);
        let user = &graph.nodes[next];
        if reshaped(graph, user).is_some() || cloned(graph, user) {
            return (chain.len() > 2).then_some(chain);
        }
        seen(graph, user)?;
        at = user.results[0];
    }
}

/// Whether a node copies a value that is not row-major to one that is.
fn cloned(graph: &Graph, node: &Node) -> bool {
    same_order(graph, node).is_some_and(|(_, from, to)| !from.layout.is_contiguous() && to.layout.is_contiguous())
}
