//! Layouts of images by the time of the kernels that make and read them ([`OpDef::layout_time`](restride_ir::OpDef::layout_time)).
//!
//! A value in memory of its own is row-major or channels-last. Values that operators without products read and make together are a
//! group, which has one layout: a chain of norms and activations, the stream of a residual network, the parts of a `cat`. From all
//! groups in one layout, and from all in the other, groups are turned as long as the sum of all times falls.

use super::facts::GraphFacts;
use super::views::view_rule;
use crate::args::known_or_refused;
use restride_ir::{
    Arg, DType, Layout, Meta, Movement, NodeId, Table, Type, ValueId, ViewOutcome, call_layout_time, macs,
};
use std::collections::BTreeMap;

/// Picoseconds for each element that is moved from one layout into the other.
const MOVED: i64 = 1500;
/// For each element of an operator that says nothing of layouts, where it is not in its own.
const OTHER: i64 = 500;
/// Most rounds in which groups are turned.
const ROUNDS: usize = 8;
/// Less than this part of all times is not worth another layout.
const LITTLE: i64 = 64;

/// Groups of values, and their layouts.
struct ImageGroups<'a, 'b> {
    facts: &'b GraphFacts<'a>,
    /// Of each value in memory of its own that may be channels-last.
    of: Table<ValueId, Option<usize>>,
    last: Vec<bool>,
    /// The groups that decide each node's time.
    decide: BTreeMap<NodeId, Vec<usize>>,
    /// Nodes whose times each group decides.
    nodes: Vec<Vec<NodeId>>,
    /// Times by the layouts of the groups that decide them.
    known: BTreeMap<(NodeId, u64), i64>,
}

/// The layout of each value that is faster in another one than eager PyTorch's, and the nanoseconds that kernels take less for the
/// layout of its group.
pub(super) fn by_time(facts: &GraphFacts<'_>) -> (Table<ValueId, Option<Layout>>, Table<ValueId, i64>) {
    let (mut chosen, mut gains) = (Table::new(), Table::new());
    let Some(mut groups) = ImageGroups::of(facts) else { return (chosen, gains) };
    let rows = groups.time();
    let mut best = (rows, groups.last.clone());
    for start in [false, true] {
        groups.last.fill(start);
        groups.descend();
        let time = groups.time();
        if time < best.0 {
            best = (time, groups.last.clone());
        }
    }
    if best.0 > rows - rows / LITTLE {
        return (chosen, gains);
    }
    groups.last = best.1;
    let gain: Vec<i64> = (0..groups.last.len()).map(|g| if groups.last[g] { groups.turned(g) } else { 0 }).collect();
    for (v, _) in facts.graph.values.iter() {
        if let Some(g) = groups.of[v].filter(|g| groups.last[*g])
            && let Some(ty) = facts.known_type(v)
        {
            chosen.set(v, Some(channels_last(&ty.layout)));
            gains.set(v, gain[g] / 1000);
        }
    }
    (chosen, gains)
}

impl<'a, 'b> ImageGroups<'a, 'b> {
    /// `None` without two values to choose layouts for.
    fn of(facts: &'b GraphFacts<'a>) -> Option<ImageGroups<'a, 'b>> {
        let graph = facts.graph;
        if !graph.ordered().any(|(_, n)| n.op.def().layout_time.is_some() || n.op.def().fused) {
            return None;
        }
        let mut groups = ImageGroups {
            facts,
            of: Table::new(),
            last: Vec::new(),
            decide: BTreeMap::new(),
            nodes: Vec::new(),
            known: BTreeMap::new(),
        };
        // Groups as trees of values, each below the one that stands for it.
        let mut above: Table<ValueId, Option<ValueId>> = Table::new();
        let top = |above: &Table<ValueId, Option<ValueId>>, mut v: ValueId| {
            while let Some(next) = above[v] {
                v = next;
            }
            v
        };
        for (id, node) in graph.ordered() {
            if macs(&facts.program.graphs, graph, id) > 0 {
                continue;
            }
            let mut first: Option<(ValueId, &[i64])> = None;
            for v in node.operands().chain(node.results.iter().copied()) {
                let Some(root) = groups.root(v) else { continue };
                let plane = &facts.known_type(root)?.layout.sizes[2..];
                match first {
                    Some((one, sizes)) if sizes == plane => {
                        let (a, b) = (top(&above, one), top(&above, root));
                        if a != b {
                            above.set(b, Some(a));
                        }
                    }
                    Some(_) => {}
                    None => first = Some((root, plane)),
                }
            }
        }
        let mut numbers: BTreeMap<ValueId, usize> = BTreeMap::new();
        for (v, _) in graph.values.iter() {
            if groups.may_be_last(v) {
                let next = numbers.len();
                groups.of.set(v, Some(*numbers.entry(top(&above, v)).or_insert(next)));
            }
        }
        if numbers.is_empty() {
            return None;
        }
        groups.last = vec![false; numbers.len()];
        groups.nodes = vec![Vec::new(); numbers.len()];
        for (id, node) in graph.ordered() {
            let values = node.operands().chain(node.results.iter().copied());
            let mut decide: Vec<usize> =
                values.filter_map(|v| groups.root(v)).filter_map(|root| groups.of[root]).collect();
            decide.sort_unstable();
            decide.dedup();
            decide.iter().for_each(|&g| groups.nodes[g].push(id));
            if !decide.is_empty() {
                groups.decide.insert(id, decide);
            }
        }
        Some(groups)
    }

    /// Whether a value gets memory of its own, in which it may be channels-last.
    fn may_be_last(&self, v: ValueId) -> bool {
        let facts = self.facts;
        let (Some(at), Some(ty)) = (facts.makers[v], facts.known_type(v)) else { return false };
        let node = &facts.graph.nodes[facts.graph.order[at]];
        let def = node.op.def();
        ty.dtype == DType::F32
            && matches!(ty.layout.rank(), 4 | 5)
            && ty.layout.sizes[1] > 1
            && ty.layout.sizes[2..].iter().any(|&n| n > 1)
            && !ty.layout.sizes.contains(&0)
            && ty.layout.is_contiguous()
            && facts.handed(v).is_none()
            && view_rule(node).is_none()
            && !def.strided
            && def.hop.is_none()
    }

    /// The value whose memory a value is a view of, if that may be channels-last.
    fn root(&self, mut v: ValueId) -> Option<ValueId> {
        loop {
            let node = &self.facts.graph.nodes[self.facts.graph.order[self.facts.makers[v]?]];
            match view_rule(node) {
                None => return self.may_be_last(v).then_some(v),
                Some((_, base, _)) => match node.args.get(base) {
                    Some(Arg::Value(base)) => v = *base,
                    _ => return None,
                },
            }
        }
    }

    /// The layout of a value with the layouts of all groups as they are now.
    fn layout(&self, v: ValueId) -> Option<Layout> {
        let eager = &self.facts.known_type(v)?.layout;
        if self.of[v].is_some_and(|g| self.last[g]) {
            return Some(channels_last(eager));
        }
        let Some(at) = self.facts.makers[v] else { return Some(eager.clone()) };
        let id = self.facts.graph.order[at];
        Some(self.view(id, v).unwrap_or_else(|| eager.clone()))
    }

    /// The layout of a view on a base that is not in its eager layout; `None` where the base is, or no strides express the view.
    fn view(&self, id: NodeId, v: ValueId) -> Option<Layout> {
        let node = &self.facts.graph.nodes[id];
        let (rule, base, _) = view_rule(node)?;
        let &Arg::Value(base) = node.args.get(base)? else { return None };
        let of = self.layout(base)?;
        if node.op.def().strided || of == self.facts.known_type(base)?.layout {
            return None;
        }
        let args = known_or_refused(node, |u| {
            let ty = self.facts.ty(u)?;
            Ok(if u == base { Meta { dtype: ty.dtype, layout: of.clone() } } else { ty.clone() })
        });
        let ViewOutcome::Views(views) = rule.of(&args.ok()?).ok()? else { return None };
        let k = node.results.iter().position(|r| *r == v)?;
        views.get(k).map(|m| m.layout.clone())
    }

    /// Picoseconds of a node, as far as layouts decide.
    fn node_time(&mut self, id: NodeId) -> i64 {
        let Some(decide) = self.decide.get(&id) else { return 0 };
        let bits = decide.iter().fold(0u64, |bits, &g| bits << 1 | self.last[g] as u64);
        let key = (decide.len() < 64).then_some((id, bits));
        if let Some(time) = key.and_then(|key| self.known.get(&key)) {
            return *time;
        }
        let time = self.time_of(id).unwrap_or(0);
        if let Some(key) = key {
            self.known.insert(key, time);
        }
        time
    }

    fn time_of(&self, id: NodeId) -> Option<i64> {
        let facts = self.facts;
        let node = &facts.graph.nodes[id];
        let def = node.op.def();
        let elements = |v: ValueId| facts.known_type(v).map_or(0, |t| t.layout.numel());
        let tensors = |v: &ValueId| matches!(facts.graph.values[*v].ty, Type::Tensor(_));
        let turned = |v: ValueId| Some(self.layout(v)? != facts.known_type(v)?.layout);
        let sum = |all: &mut dyn Iterator<Item = ValueId>, each: i64| {
            all.filter(|v| turned(*v) == Some(true)).map(|v| elements(v).saturating_mul(each)).sum::<i64>()
        };
        if let Some((_, base, _)) = view_rule(node) {
            let Some(&Arg::Value(base)) = node.args.get(base) else { return None };
            let lost = turned(base)? && node.results.iter().any(|r| self.view(id, *r).is_none());
            return Some(if lost { elements(base).saturating_mul(MOVED) } else { 0 });
        }
        let mut operands = node.operands().filter(tensors);
        if def.strided || def.hop.is_some() {
            return Some(sum(&mut operands, MOVED));
        }
        // Operands and results of equal sizes that are in different orders.
        let mixed = || {
            let result = *node.results.first()?;
            let (sizes, last) = (&facts.known_type(result)?.layout.sizes, is_last(&self.layout(result)?));
            let differs = |v: &ValueId| {
                facts.known_type(*v).is_some_and(|t| t.layout.sizes == *sizes)
                    && self.layout(*v).is_some_and(|l| is_last(&l) != last)
            };
            Some(
                node.operands().filter(tensors).filter(differs).map(|v| elements(v).saturating_mul(MOVED)).sum::<i64>(),
            )
        };
        match def.movement {
            Some(Movement::Assemble(_)) => {
                let last = is_last(&self.layout(*node.results.first()?)?);
                let apart = |v: &ValueId| self.layout(*v).is_some_and(|l| is_last(&l) != last);
                return Some(operands.filter(apart).map(|v| elements(v).saturating_mul(MOVED)).sum());
            }
            Some(_) => return mixed(),
            None => {}
        }
        let meta = |v: ValueId| Some(Meta { dtype: facts.known_type(v)?.dtype, layout: self.layout(v)? });
        let args = known_or_refused(node, |v| meta(v).map_or_else(|| facts.ty(v).cloned(), Ok)).ok()?;
        let outs = node.results.iter().map(|r| meta(*r)).collect::<Option<Vec<Meta>>>();
        let declared = outs.and_then(|outs| call_layout_time(&facts.program.graphs, node, &args, &outs));
        match declared {
            Some(Ok(time)) if def.fused => Some(time.saturating_add(mixed()?)),
            Some(Ok(time)) => Some(time),
            _ if def.pointwise || def.fused => mixed(),
            _ => Some(sum(&mut operands, OTHER) + sum(&mut node.results.iter().copied(), OTHER)),
        }
    }

    /// Picoseconds of all nodes.
    fn time(&mut self) -> i64 {
        let all: Vec<NodeId> = self.decide.keys().copied().collect();
        all.into_iter().fold(0i64, |sum, id| sum.saturating_add(self.node_time(id)))
    }

    /// Picoseconds that all nodes take more with a group in its other layout.
    fn turned(&mut self, g: usize) -> i64 {
        let nodes = std::mem::take(&mut self.nodes[g]);
        let sum = |all: &mut Self| nodes.iter().fold(0i64, |sum, id| sum.saturating_add(all.node_time(*id)));
        let before = sum(self);
        self.last[g] = !self.last[g];
        let more = sum(self).saturating_sub(before);
        self.last[g] = !self.last[g];
        self.nodes[g] = nodes;
        more
    }

    /// Turns groups as long as the sum of times falls.
    fn descend(&mut self) {
        for _ in 0..ROUNDS {
            let mut better = false;
            for g in 0..self.last.len() {
                if self.turned(g) < 0 {
                    self.last[g] = !self.last[g];
                    better = true;
                }
            }
            if !better {
                return;
            }
        }
    }
}

/// The channels-last layout of a row-major one.
fn channels_last(rows: &Layout) -> Layout {
    let order: Vec<usize> = [0].into_iter().chain(2..rows.rank()).chain([1]).collect();
    Layout::permuted(&rows.sizes, &order)
}

/// Whether channels are side by side.
fn is_last(l: &Layout) -> bool {
    l.rank() > 3 && l.sizes[1] > 1 && l.strides[1] == 1 && l.sizes[2..].iter().any(|&n| n > 1)
}
