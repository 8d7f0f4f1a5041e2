//! Chains of calls on elements behind a `cat`, computed part by part.
//!
//! A rotary embedding, `add(mul(q, cos), mul(cat(neg(b), a), sin))`, is a `cat` of two such sums, of parts of `q`, `cos` and `sin`. Fusion
//! computes each sum in its part of the result, so neither the inner `cat` nor what it joins is written. Every element keeps its bits.
//!
//! A `cat` stays where it is if an operand is made by an operator on more than elements, as a product: that is computed in its place
//! in the `cat`, which the chain then overwrites.

use crate::build::{Rebuilt, rebuild};
use crate::dce;
use crate::parts::{added, is_by_element, result};
use crate::simplify::{Uses, meta};
use restride_ir::{
    Arg, Args, CollectTree, Expr, Graph, GraphId, Layout, Movement, Node, NodeId, Program, Result, Table, ValueId,
};
use restride_ops::lookup;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Most operands of a `cat` whose chain is computed in parts.
const PARTS: usize = 4;
/// Fewest neighbouring elements of a part, and fewest of the whole.
const ROW: i64 = 16;
const WHOLE: i64 = 256;
/// Most calls of a chain.
const CALLS: usize = 24;
/// Most calls that a part is computed with: those of the chain, and those that make their other operands.
const TREE: u32 = 96;
/// Most views of a value that are looked at for one that shows a part.
const VIEWS: usize = 16;

/// Computes chains behind a `cat` in parts.
///
/// # Errors
/// A valid lowered program gives none.
pub(crate) fn by_parts(program: Program) -> Result<Program> {
    let chains: BTreeMap<GraphId, CutChains> =
        program.graphs.iter().filter_map(|(id, g)| Some((id, CutChains::of(g)?))).collect_map();
    if chains.is_empty() {
        return Ok(program);
    }
    let made = RefCell::new(MadeParts::new());
    let mut out = rebuild(&program, |new, node| {
        let split = || {
            let chains = chains.get(&new.id)?;
            let root = chains.readers.uses.maker[*node.results.first()?]?;
            Some((chains.splits[root].as_ref()?, &chains.readers))
        };
        if !split().is_some_and(|(split, readers)| in_parts(new, node, split, readers, &made)) {
            let args = new.args(node);
            new.keep(node, args);
        }
        Ok(())
    })?;
    dce(&mut out);
    Ok(out)
}

/// The parts of the values that were computed in parts, of each graph, in the order of the splits' sizes.
type MadeParts = BTreeMap<(GraphId, ValueId), (ChainSplit, Vec<ValueId>)>;

/// How the chain that ends with a call is cut.
#[derive(Clone, PartialEq, Eq)]
struct ChainSplit {
    /// The dimension, counted from the last one, which is 1.
    from_end: usize,
    /// Sizes of the parts in it.
    sizes: Vec<i64>,
}

/// Who makes and reads each value, and what views show it.
struct Readers {
    uses: Uses,
    views: Table<ValueId, Vec<ValueId>>,
}

impl Readers {
    fn of(graph: &Graph) -> Readers {
        let mut views: Table<ValueId, Vec<ValueId>> = Table::new();
        for (_, node) in graph.ordered().filter(|(_, node)| node.op.is_view()) {
            if let Some(Arg::Value(base)) = node.args.get(node.op.def().base as usize) {
                views.entry(*base).extend(&node.results);
            }
        }
        Readers { uses: Uses::of(graph), views }
    }
}

/// The chains of a graph that are cut, by their last calls.
struct CutChains {
    splits: Table<NodeId, Option<ChainSplit>>,
    readers: Readers,
}

impl CutChains {
    /// `None` if there are none.
    fn of(graph: &Graph) -> Option<CutChains> {
        let assembles = |n: &Node| matches!(n.op.def().movement, Some(Movement::Assemble(_)));
        if !graph.ordered().any(|(_, node)| assembles(node)) {
            return None;
        }
        let readers = Readers::of(graph);
        let splits = chain_splits(graph, &readers.uses)?;
        Some(CutChains { splits, readers })
    }
}

/// How chains are cut, by their last calls; `None` if none is.
fn chain_splits(graph: &Graph, uses: &Uses) -> Option<Table<NodeId, Option<ChainSplit>>> {
    let mut splits: Table<NodeId, Option<ChainSplit>> = Table::with_capacity(graph.nodes.len());
    // Of each call of a chain, the chain's last one.
    let mut ends: Table<NodeId, Option<NodeId>> = Table::with_capacity(graph.nodes.len());
    let mut some = false;
    for (_, node) in graph.ordered() {
        let Some(split) = cut(graph, node).filter(|_| node.operands().all(|v| is_cheap(graph, uses, v))) else {
            continue;
        };
        let chain = chain(graph, uses, node.results[0]);
        // Where it joins the chain of another one, both end together, or this one stays.
        let joined = chain.iter().position(|n| ends[*n].is_some());
        let own = &chain[..joined.unwrap_or(chain.len())];
        let Some(root) = joined.map_or(chain.last().copied(), |at| ends[chain[at]]) else { continue };
        if splits[root].as_ref().is_none_or(|known| *known == split) {
            own.iter().for_each(|n| ends.set(*n, Some(root)));
            splits.set(root, Some(split));
            some = true;
        }
    }
    some.then_some(splits)
}

/// How a `cat` of row-major parts cuts its result.
fn cut(graph: &Graph, node: &Node) -> Option<ChainSplit> {
    let Some(Movement::Assemble(pieces)) = node.op.def().movement else { return None };
    let whole = meta(graph, *node.results.first()?)?;
    let (rank, n) = (whole.layout.rank(), whole.layout.numel());
    let metas: Vec<_> = node.operands().map(|v| meta(graph, v)).collect::<Option<_>>()?;
    let differs = |d: &usize| metas.iter().any(|m| m.layout.sizes.get(*d) != Some(&whole.layout.sizes[*d]));
    let dim = (0..rank).find(differs)?;
    let fits = |m: &restride_ir::Meta| {
        let others = (0..rank).filter(|d| *d != dim);
        m.dtype == whole.dtype
            && m.layout.rank() == rank
            && others.into_iter().all(|d| m.layout.sizes[d] == whole.layout.sizes[d])
    };
    let inner: i64 = whole.layout.sizes[dim + 1..].iter().product();
    let sizes: Vec<i64> = metas.iter().filter(|m| fits(m)).map(|m| m.layout.sizes[dim]).collect();
    let long = sizes.iter().all(|n| n * inner >= ROW);
    if sizes.len() != metas.len() || !(2..=PARTS).contains(&sizes.len()) || n < WHOLE || !long {
        return None;
    }
    // Each operand has its part, behind those before it.
    let args = crate::args::known(&node.args, |v| meta(graph, v))?;
    let rows = Layout::contiguous(&whole.layout.sizes);
    let parts = pieces(&Args(&args), &rows).ok()?;
    let mut start = 0;
    for (k, (part, size)) in parts.iter().zip(&sizes).enumerate() {
        let own = rows.slice(dim as i64, Some(&start), Some(&(start + size)), &1).ok()?;
        if part.operand != k || part.region != own {
            return None;
        }
        start += size;
    }
    (parts.len() == sizes.len() && start == whole.layout.sizes[dim])
        .then_some(ChainSplit { from_end: rank - dim, sizes })
}

/// Whether the operand of a `cat` is computed element by element for it alone, or must be copied into it.
fn is_cheap(graph: &Graph, uses: &Uses, mut v: ValueId) -> bool {
    loop {
        let Some(maker) = uses.maker[v].map(|m| &graph.nodes[m]) else { return true };
        let Some(to) = meta(graph, v) else { return false };
        if !maker.op.is_view() {
            return uses.count[v] > 1 || is_by_element(maker.op.def(), to.dtype);
        }
        let base = maker.args.get(maker.op.def().base as usize);
        let Some(Arg::Value(base)) = base else { return false };
        let all = meta(graph, *base).is_some_and(|m| m.layout.numel() == to.layout.numel());
        if !all || uses.count[*base] > 1 {
            return true;
        }
        v = *base;
    }
}

/// The calls on elements that read a value, each the one before it alone.
fn chain(graph: &Graph, uses: &Uses, mut v: ValueId) -> Vec<NodeId> {
    let mut chain = Vec::new();
    let Some(sizes) = meta(graph, v).map(|m| m.layout.sizes) else { return chain };
    while chain.len() < CALLS
        && let Some(reader) = uses.only(v).filter(|r| is_elementwise(graph, &graph.nodes[*r]))
    {
        v = graph.nodes[reader].results[0];
        if meta(graph, v).is_none_or(|m| m.layout.sizes != sizes) {
            break;
        }
        chain.push(reader);
    }
    chain
}

/// Whether a call computes each element of its one result of the elements of its operands at the same index.
fn is_elementwise(graph: &Graph, node: &Node) -> bool {
    let &[r] = &node.results[..] else { return false };
    let Some(to) = meta(graph, r) else { return false };
    let broadcasts = |v: ValueId| {
        meta(graph, v).is_some_and(|from| {
            let (from, to) = (&from.layout.sizes, &to.layout.sizes);
            from.len() <= to.len() && from.iter().rev().zip(to.iter().rev()).all(|(a, b)| a == b || *a == 1)
        })
    };
    is_by_element(node.op.def(), to.dtype) && node.operands().all(broadcasts)
}

/// Computes the chain that ends with a node in parts; false if it is not what it is taken for.
fn in_parts(
    new: &mut Rebuilt<'_>,
    node: &Node,
    split: &ChainSplit,
    readers: &Readers,
    all: &RefCell<MadeParts>,
) -> bool {
    let (old, r) = (new.old, node.results[0]);
    let Some(whole) = meta(old, r) else { return false };
    let mut made = Vec::with_capacity(split.sizes.len());
    for k in 0..split.sizes.len() {
        let mut part = ChainPart { root: r, split, k, readers, all, known: BTreeMap::new(), left: TREE };
        let Some(value) = part.of(new, r) else { return false };
        made.push(value);
    }
    let cat = lookup("aten.cat.default").expect("the operator table has aten.cat");
    let dim = (whole.layout.rank() - split.from_end) as i64;
    let args = vec![Arg::Values(made.iter().copied().map(Some).collect()), Arg::Scalar(Expr::Int(dim))];
    let Some(ty) = result(&new.graph, cat, &args).filter(|ty| ty.dtype == whole.dtype) else { return false };
    let mut builder = new.builder(node, r);
    let joined = builder.call("aten.cat.default", args, ty);
    let joined = builder.declare(joined, old.tensor(r));
    new.map.set(r, Some(joined));
    all.borrow_mut().insert((new.id, r), (split.clone(), made));
    true
}

/// A part of a chain under construction.
struct ChainPart<'a> {
    /// The result of the chain.
    root: ValueId,
    split: &'a ChainSplit,
    /// Which.
    k: usize,
    readers: &'a Readers,
    all: &'a RefCell<MadeParts>,
    /// What was made of old values.
    known: BTreeMap<ValueId, ValueId>,
    /// Calls that it may still have.
    left: u32,
}

impl ChainPart<'_> {
    /// The part of an old value.
    fn of(&mut self, new: &mut Rebuilt<'_>, v: ValueId) -> Option<ValueId> {
        if let Some(made) = self.known.get(&v) {
            return Some(*made);
        }
        if let Some((_, parts)) = self.all.borrow().get(&(new.id, v)).filter(|(split, _)| split == self.split) {
            return parts.get(self.k).copied();
        }
        let old = new.old;
        let from = meta(old, v)?;
        let dim = from.layout.rank().checked_sub(self.split.from_end);
        let Some(dim) = dim.filter(|d| from.layout.sizes[*d] != 1) else { return new.map[v] };
        // The chain's last call is read by others, its further ones by the chain alone.
        let uses = &self.readers.uses;
        let alone = v == self.root || uses.count[v] == 1;
        let maker = uses.maker[v].filter(|_| alone).map(|m| &old.nodes[m]);
        let made = match maker {
            Some(maker) if cut(old, maker).is_some_and(|own| own == *self.split) => {
                new.map[maker.operands().nth(self.k)?]?
            }
            Some(maker) if is_elementwise(old, maker) => {
                self.left = self.left.checked_sub(1)?;
                let args = maker.args.iter().map(|a| a.try_map(|x| self.of(new, *x).ok_or(()), |e| Ok(e.clone())));
                let args: Vec<Arg> = args.collect::<std::result::Result<_, ()>>().ok()?;
                let ty = result(&new.graph, maker.op, &args).filter(|ty| ty.dtype == from.dtype)?;
                added(new, maker, v, args, ty)
            }
            _ => {
                let start: i64 = self.split.sizes[..self.k].iter().sum();
                let ends = [dim as i64, start, start + self.split.sizes[self.k], 1];
                let mut args = vec![Arg::Value(new.map[v]?)];
                args.extend(ends.map(|n| Arg::Scalar(Expr::Int(n))));
                let slice = lookup("aten.slice.Tensor").expect("the operator table has aten.slice");
                let ty = result(&new.graph, slice, &args)?;
                // What shows the same is the same value, which fusion reads once.
                let same = |w: &&ValueId| new.map[**w].is_some() && meta(old, **w) == ty.known();
                let shown = self.readers.views[v].iter().take(VIEWS).find(same).and_then(|w| new.map[*w]);
                match shown {
                    Some(shown) => shown,
                    None => {
                        let origin = self.readers.uses.maker[v].or(self.readers.uses.by[v])?;
                        let origin = old.nodes[origin].origin.clone();
                        let hint = old.values[v].name.clone();
                        new.builder_of(origin, hint).call("aten.slice.Tensor", args, ty)
                    }
                }
            }
        };
        self.known.insert(v, made);
        Some(made)
    }
}
