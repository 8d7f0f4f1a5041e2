//! Fusion: calls that compute their results from one another tile by tile become one node, whose body is a graph. What only the next
//! call reads is never written.
//!
//! A group grows from its last node towards its operands. A producer joins where the group can still be computed in tiles
//! ([`Tiling`]), and everything that reads its results is in the group or comes after it, so no value is computed twice; what is
//! read outside is a result of the fused node. The producer's operands live until the group runs: it stays out where they take
//! more memory than its results did, and something else runs in between.
//!
//! Source: the cones of technology mapping (Cong and Ding, FlowMap, 1994); loop fusion of XLA.

use crate::build::Rebuilt;
use restride_ir::{
    Arg, CollectTree, Error, Graph, GraphId, Node, NodeId, Program, Reason, Remark, RemarkKind, Result, ReuseKind,
    RowExtent, RowForm, RowSpace, Table, TileRule, Tiling, ValueId, call_may_trail, check_fused, epilogue_rows,
    known_meta,
};
use restride_ops::lookup;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes that what the calls of a group hand on may take in the smallest tile.
const FRAME: i64 = 48 << 10;
/// Most elements of a row that is read again, if nothing of it is kept: two calls read longer ones as fast.
const AGAIN: i64 = 1024;
/// Most operands and results of a group.
const OPERANDS: usize = 64;

/// Options of [`fuse`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FuseOptions {
    /// Most operators of a group; below 2, nothing is fused.
    pub most: usize,
    /// Products and convolutions head groups: the calls behind them work on finished parts of their results (off by default).
    pub heads: bool,
    /// Groups may have operators that are no functions of rows: normalisations, variances, other types than singles (off by default).
    pub tiles: bool,
    /// Fewest elements of rows that a group joins (64 by default): shorter ones cost more to walk over than to write.
    pub row: i64,
    /// Declines one candidate in four, drawn from this seed: other groups that are as correct, for tests.
    pub vary: Option<u64>,
}

impl Default for FuseOptions {
    fn default() -> Self {
        FuseOptions { most: 32, heads: false, tiles: false, row: 64, vary: None }
    }
}

impl FuseOptions {
    /// No fusion.
    pub fn none() -> Self {
        FuseOptions { most: 0, ..FuseOptions::default() }
    }
}

/// For each graph, the groups of nodes, as positions in its order.
pub type FusedGroups = BTreeMap<GraphId, Vec<Vec<usize>>>;

/// A program with fused nodes.
#[derive(Clone, Debug)]
pub struct Fused {
    /// The program.
    pub program: Program,
    /// The groups that became nodes.
    pub groups: FusedGroups,
    /// What was fused, and where it was declined.
    pub remarks: Vec<Remark>,
}

/// Fuses the nodes of a lowered program with known sizes; `None` where nothing is fused.
///
/// # Errors
/// A valid lowered program gives none.
pub fn fuse(program: &Program, options: &FuseOptions) -> Result<Option<Fused>> {
    let mut groups = FusedGroups::new();
    let mut declined: BTreeMap<GraphId, Vec<DeclinedProducer>> = BTreeMap::new();
    for (id, graph) in program.graphs.iter().filter(|_| options.most > 1) {
        let found = Grouping::new(graph, options).run();
        declined.insert(id, found.declined);
        if !found.groups.is_empty() {
            groups.insert(id, found.groups);
        }
    }
    if groups.is_empty() {
        return Ok(None);
    }
    let rest = program.copy_without(|id| groups.contains_key(&id));
    let mut out = Fused { program: rest, groups, remarks: Vec::new() };
    for (id, groups) in &out.groups {
        let declined = declined.remove(id).unwrap_or_default();
        rewrite(*id, &program.graphs[*id], groups, &declined, &mut out.program, &mut out.remarks)?;
    }
    Ok(Some(out))
}

/// Fuses groups that were found before.
///
/// # Errors
/// Positions that are not there or in two groups, nodes that cannot be computed in tiles, or a reader between the nodes of a group.
pub fn apply(program: &Program, groups: &FusedGroups) -> Result<Program> {
    let mut out = program.copy_without(|id| groups.contains_key(&id));
    for (id, groups) in groups {
        let graph = program.graphs.get(*id).ok_or_else(|| Error::invalid("a group of a graph that is not there"))?;
        rewrite(*id, graph, groups, &[], &mut out, &mut Vec::new())?;
    }
    Ok(out)
}

/// A producer that stayed out: its value, the group's last node, and why.
struct DeclinedProducer {
    value: ValueId,
    root: NodeId,
    reason: Reason,
}

/// Who makes and reads the values of a graph.
struct ValueUses {
    at: Table<NodeId, usize>,
    makers: Table<ValueId, Option<NodeId>>,
    readers: Table<ValueId, Vec<NodeId>>,
    /// Values that the caller gets.
    returned: Table<ValueId, bool>,
}

impl ValueUses {
    fn of(graph: &Graph) -> ValueUses {
        let mut new =
            ValueUses { at: Table::new(), makers: Table::new(), readers: Table::new(), returned: Table::new() };
        for (position, (id, node)) in graph.ordered().enumerate() {
            new.at.set(id, position);
            node.results.iter().for_each(|r| new.makers.set(*r, Some(id)));
            for v in node.operands() {
                let readers = new.readers.entry(v);
                if readers.last() != Some(&id) {
                    readers.push(id);
                }
            }
        }
        graph.output_values().for_each(|v| new.returned.set(v, true));
        new
    }
}

struct Grouping<'a> {
    graph: &'a Graph,
    options: FuseOptions,
    uses: ValueUses,
    rules: Table<NodeId, Option<TileRule>>,
    /// Whether a node is a function of rows.
    in_rows: Table<NodeId, bool>,
    /// Whether the next group may have dimensions that are not cut because its calls join them.
    joins: bool,
    /// Nodes before each position that are no views.
    computing: Vec<usize>,
    /// The group that a node is in.
    taken: Table<NodeId, Option<NodeId>>,
    groups: Vec<Vec<usize>>,
    declined: Vec<DeclinedProducer>,
}

impl<'a> Grouping<'a> {
    fn new(graph: &'a Graph, options: &FuseOptions) -> Self {
        let mut rules = Table::new();
        graph.ordered().for_each(|(id, node)| rules.set(id, TileRule::of(graph, node)));
        let (uses, taken, mut in_rows) = (ValueUses::of(graph), Table::new(), Table::new());
        let (mut computing, mut count) = (vec![0], 0);
        for (id, node) in graph.ordered() {
            in_rows.set(id, RowForm::of(graph, node).is_some());
            count += usize::from(node.op.def().view.is_none());
            computing.push(count);
        }
        let (options, groups, declined) = (*options, Vec::new(), Vec::new());
        Grouping { graph, options, uses, rules, in_rows, joins: true, computing, taken, groups, declined }
    }

    fn run(mut self) -> Self {
        for &root in self.graph.order.iter().rev() {
            if self.taken[root].is_some() || self.rules[root].is_none() || self.is_view(root) || !self.admits(root) {
                continue;
            }
            let group = self.group(root);
            let computes = group.iter().filter(|p| !self.is_view(self.graph.order[**p])).count();
            if computes > 1 {
                self.groups.push(group);
            } else {
                group.iter().for_each(|p| self.taken.set(self.graph.order[*p], None));
                self.taken.set(root, None);
            }
        }
        self.groups.reverse();
        self
    }

    /// The positions of the group whose last node is `root`.
    fn group(&mut self, root: NodeId) -> Vec<usize> {
        let declined = self.declined.len();
        self.joins = !self.options.tiles;
        let (shape, group) = self.grown(root);
        if !self.joins || shape.is_none_or(|s| !s.has_whole() || self.joined(&s, &group)) {
            return group;
        }
        // Without calls that join what they do not cut, another group may be as large.
        group.iter().for_each(|p| self.taken.set(self.graph.order[*p], None));
        self.declined.truncate(declined);
        self.joins = false;
        self.grown(root).1
    }

    /// Whether calls join what a group does not cut, along rows that are neighbours in memory.
    fn joined(&self, shape: &GroupShape, group: &[usize]) -> bool {
        let graph = self.graph;
        let nodes = || group.iter().map(|p| graph.order[*p]);
        let Some(space) = RowSpace::of(graph, &shape.tiling, nodes()) else { return false };
        // Without calls on elements, reductions save nothing.
        let elements = space.calls.iter().flatten().any(|c| matches!(c, RowExtent::Elements(_)));
        let again = space.passes() > 1 && space.kept.is_empty() && space.len > AGAIN;
        if !space.joins || !elements || again || space.len < self.options.row {
            return false;
        }
        let made: BTreeSet<ValueId> = nodes().flat_map(|n| graph.nodes[n].results.iter().copied()).collect_set();
        let mut given = nodes().flat_map(|n| graph.nodes[n].operands()).filter(|v| !made.contains(v));
        given.all(|v| {
            let Ok(meta) = known_meta(graph, v) else { return false };
            let follows = shape.tiling.follows(v);
            let along = |d: &usize| follows.iter().position(|f| f.map(usize::from) == Some(*d));
            let strides: Vec<i64> = space.row.iter().filter_map(along).map(|i| meta.layout.strides[i]).collect();
            strides.last().is_none_or(|s| *s <= 1) && strides.is_sorted_by(|a, b| a >= b || *a == 0)
        })
    }

    /// The group that grows from `root`: its shape, and the positions of its nodes.
    fn grown(&mut self, root: NodeId) -> (Option<GroupShape>, Vec<usize>) {
        let graph = self.graph;
        let Some(mut shape) = self.shape(root) else { return (None, Vec::new()) };
        self.taken.set(root, Some(root));
        let mut waiting: BTreeSet<usize> = self.producers(root);
        // From the last to the first: when it is a producer's turn, all that may read it has had its own.
        while let Some(position) = waiting.pop_last() {
            let id = graph.order[position];
            match self.joins(&shape, id, root) {
                Ok(grown) => {
                    shape = grown;
                    self.taken.set(id, Some(root));
                    // A head reads its operands as a whole.
                    if shape.head != Some(id) {
                        waiting.extend(self.producers(id));
                    }
                }
                Err(Some(reason)) => {
                    let value = graph.nodes[id].results.first();
                    self.declined.extend(value.map(|v| DeclinedProducer { value: *v, root, reason }));
                }
                Err(None) => {}
            }
        }
        // A view of what is made outside costs nothing there.
        let mut group = Vec::with_capacity(shape.nodes.len());
        for position in shape.nodes.iter().rev().copied() {
            let id = graph.order[position];
            let inside = |v: ValueId| self.uses.makers[v].is_some_and(|m| self.taken[m] == Some(root));
            if self.is_view(id) && !graph.nodes[id].operands().next().is_some_and(inside) {
                self.taken.set(id, None);
            } else {
                group.push(position);
            }
        }
        (Some(shape), group)
    }

    /// Whether a group may have a node with a tile rule.
    fn admits(&self, id: NodeId) -> bool {
        self.options.tiles || self.in_rows[id] || self.is_view(id)
    }

    fn is_view(&self, id: NodeId) -> bool {
        self.graph.nodes[id].op.def().view.is_some()
    }

    /// Positions of the nodes that make a node's operands.
    fn producers(&self, id: NodeId) -> BTreeSet<usize> {
        let makers = self.graph.nodes[id].operands().filter_map(|v| self.uses.makers[v]);
        makers.map(|m| self.uses.at[m]).collect_set()
    }

    /// Whether a value is read outside of a group, or returned.
    fn leaves(&self, v: ValueId, root: NodeId) -> bool {
        self.uses.returned[v] || self.uses.readers[v].iter().any(|r| self.taken[*r] != Some(root))
    }

    /// A group of one node.
    fn shape(&self, root: NodeId) -> Option<GroupShape> {
        let node = &self.graph.nodes[root];
        let used = |v: &&ValueId| self.uses.returned[**v] || !self.uses.readers[**v].is_empty();
        let first = *node.results.iter().find(used)?;
        let sizes = known_meta(self.graph, first).ok()?.layout.sizes;
        let empty = GroupShape {
            nodes: Vec::new(),
            tiling: Tiling::new(first, &sizes),
            values: Vec::new(),
            frame: 0,
            operands: 0,
            results: 0,
            head: None,
        };
        let shape = empty.with(self, root, root)?;
        (!sizes.contains(&0)).then_some(shape)
    }

    /// The group with a producer; or the reason why that stays out, where it is worth a remark.
    fn joins(
        &mut self,
        shape: &GroupShape,
        id: NodeId,
        root: NodeId,
    ) -> std::result::Result<GroupShape, Option<Reason>> {
        if self.taken[id].is_some() {
            return Err(None);
        }
        let (node, end) = (&self.graph.nodes[id], self.uses.at[root]);
        if self.rules[id].is_none() && (!self.options.heads || epilogue_rows(self.graph, node).is_none()) {
            return Err(None);
        }
        let between = |r: &&NodeId| self.taken[**r] != Some(root) && self.uses.at[**r] < end;
        if let Some(by) = node.results.iter().flat_map(|r| &self.uses.readers[*r]).find(between) {
            return Err(Some(Reason::StillRead { by: Some(*by) }));
        }
        if self.rules[id].is_some() && !self.admits(id) {
            return Err(None);
        }
        if self.skips(id) || shape.nodes.len() >= self.options.most {
            return Err(Some(Reason::SwitchedOff));
        }
        if self.rules[id].is_none() {
            return self.heads(shape, id, root);
        }
        let of_head = |h: NodeId| node.results.iter().any(|r| graph_reads(self.graph, h, *r));
        if let Some(head) = shape.head.filter(|h| of_head(*h)) {
            return Err(Some(Reason::StillRead { by: Some(head) }));
        }
        if self.is_view(id) && node.results.iter().any(|r| self.leaves(*r, root)) {
            return Err(None);
        }
        let grown = shape.with(self, id, root).ok_or(Some(Reason::SizesDiffer))?;
        if self.costs_memory(shape, id, root) {
            return Err(Some(Reason::InTheWay));
        }
        Ok(grown)
    }

    /// The group with a producer as its head, which is computed in the place of the group's result.
    fn heads(&self, shape: &GroupShape, id: NodeId, root: NodeId) -> std::result::Result<GroupShape, Option<Reason>> {
        let (graph, node) = (self.graph, &self.graph.nodes[id]);
        let made_inside = |v: ValueId| self.uses.makers[v].is_some_and(|m| self.taken[m] == Some(root));
        if shape.head.is_some()
            || node.results.iter().any(|r| self.leaves(*r, root))
            || node.operands().any(made_inside)
        {
            return Err(None);
        }
        let mut grown = shape.clone();
        grown.nodes.push(self.uses.at[id]);
        grown.head = Some(id);
        // Its result may take over the operand's memory, which the group's result would not.
        let over = |l: &restride_ir::Reuse| l.kind == ReuseKind::Trailing;
        if node.op.def().reuse.iter().any(over) && call_may_trail(graph, id, &[]) {
            return Err(Some(Reason::InTheWay));
        }
        let mut nodes: Vec<usize> = grown.nodes.clone();
        nodes.sort_unstable();
        let inside = |v: ValueId| self.uses.makers[v].is_some_and(|m| m == id || self.taken[m] == Some(root));
        let members = nodes.iter().map(|p| graph.order[*p]);
        let stays = |m: &NodeId| !self.is_view(*m) || graph.nodes[*m].operands().next().is_some_and(inside);
        let members: Vec<NodeId> = members.filter(stays).collect();
        let (body, ..) = body(graph, &self.uses, &members);
        if Tiling::of(&body).is_err() {
            return Err(Some(Reason::SizesDiffer));
        }
        if self.costs_memory(shape, id, root) {
            return Err(Some(Reason::InTheWay));
        }
        Ok(grown)
    }

    /// Whether operands that end with a producer would live on, with more bytes than its results, while other nodes run.
    fn costs_memory(&self, shape: &GroupShape, id: NodeId, root: NodeId) -> bool {
        let (from, to) = (self.uses.at[id], self.uses.at[root]);
        // A view's base lives on with the view.
        if self.is_view(id) {
            return false;
        }
        let graph = self.graph;
        // Views take no memory where they run.
        let own = shape.nodes.iter().filter(|p| !self.is_view(graph.order[**p])).count();
        if self.computing[to + 1] - self.computing[from + 1] == own {
            return false;
        }
        let last = |v: ValueId| self.uses.readers[v].iter().map(|r| self.uses.at[*r]).max();
        let ends = |v: &ValueId| self.uses.makers[*v].is_some() && !self.uses.returned[*v] && last(*v) == Some(from);
        let operands: BTreeSet<ValueId> = graph.nodes[id].operands().filter(ends).collect_set();
        let sum = |values: &mut dyn Iterator<Item = ValueId>| -> i64 { values.map(|v| bytes(graph, v)).sum() };
        sum(&mut operands.into_iter()) > sum(&mut graph.nodes[id].results.iter().copied())
    }

    /// Declines one choice in four where [`FuseOptions::vary`] asks for variety.
    fn skips(&mut self, id: NodeId) -> bool {
        let Some(state) = &mut self.options.vary else { return false };
        *state = (*state ^ self.uses.at[id] as u64).wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (*state >> 33) % 4 == 0
    }
}

fn graph_reads(graph: &Graph, id: NodeId, v: ValueId) -> bool {
    graph.nodes[id].operands().any(|o| o == v)
}

fn bytes(graph: &Graph, v: ValueId) -> i64 {
    known_meta(graph, v).map_or(0, |m| m.layout.numel().saturating_mul(m.dtype.size() as i64))
}

/// A group under construction.
#[derive(Clone)]
struct GroupShape {
    /// Positions, the last first.
    nodes: Vec<usize>,
    tiling: Tiling,
    /// Values that only the group's calls read, and their element sizes.
    values: Vec<(ValueId, i64)>,
    /// Bytes that these take in the smallest tile.
    frame: i64,
    /// At most as many operands from outside.
    operands: usize,
    results: usize,
    head: Option<NodeId>,
}

impl GroupShape {
    /// With another node before its own; `None` if the group can then not be computed in tiles.
    fn with(&self, grouping: &Grouping<'_>, id: NodeId, root: NodeId) -> Option<GroupShape> {
        let (graph, node) = (grouping.graph, &grouping.graph.nodes[id]);
        let mut grown = self.clone();
        grown.tiling.add(graph, node, grouping.rules[id].as_ref()?).ok()?;
        grown.nodes.push(grouping.uses.at[id]);
        for &r in node.results.iter().filter(|_| node.op.def().view.is_none()) {
            if grouping.leaves(r, root) {
                grown.results += 1;
                grown.tiling.write(r);
            } else if id != root || grouping.uses.readers[r].is_empty() {
                grown.values.push((r, known_meta(graph, r).ok()?.dtype.size() as i64));
            }
        }
        grown.operands += node.operands().count();
        let rows = if grown.has_whole() && !grouping.options.tiles {
            if !grouping.joins {
                return None;
            }
            Some(RowSpace::of(graph, &grown.tiling, grown.nodes.iter().rev().map(|p| graph.order[*p]))?)
        } else {
            None
        };
        // What a row's calls hand on in one pass is in parts.
        let parts: &[usize] = rows.as_ref().filter(|r| r.kept.is_empty()).map_or(&[], |r| &r.row);
        // Tiles of the values so far change with the dimensions that are cut.
        let known = if grown.tiling.cut == self.tiling.cut && rows.is_none() { self.values.len() } else { 0 };
        grown.frame = if known > 0 { self.frame } else { 0 };
        for (v, size) in &grown.values[known..] {
            let sizes = known_meta(graph, *v).ok()?.layout.sizes;
            let follows = grown.tiling.follows(*v);
            let whole = |i: usize| {
                let along = follows.get(i).copied().flatten().map(usize::from);
                along.is_none_or(|d| !grown.tiling.cut[d] && !parts.contains(&d))
            };
            let whole = sizes.iter().enumerate().filter(|(i, _)| whole(*i)).map(|(_, n)| *n);
            let elements = whole.fold(1i64, |n, size| n.saturating_mul(size));
            grown.frame = grown.frame.saturating_add(elements.saturating_mul(*size).saturating_add(63) / 64 * 64);
        }
        if grown.has_whole() && grown.head.is_some() {
            return None;
        }
        (grown.frame <= FRAME && grown.operands + grown.results <= OPERANDS).then_some(grown)
    }

    /// Whether it has dimensions that are not cut.
    fn has_whole(&self) -> bool {
        (0..self.tiling.sizes.len()).any(|d| !self.tiling.cut[d] && self.tiling.sizes[d] > 1)
    }
}

/// Puts fused nodes in the place of their groups' last nodes.
fn rewrite(
    id: GraphId,
    graph: &Graph,
    groups: &[Vec<usize>],
    declined: &[DeclinedProducer],
    program: &mut Program,
    remarks: &mut Vec<Remark>,
) -> Result<()> {
    let op = lookup("restride.fused.default").expect("the operator table has restride.fused");
    let mut group_of: Table<NodeId, Option<usize>> = Table::with_capacity(graph.nodes.len());
    for (g, group) in groups.iter().enumerate() {
        let in_order = group.len() > 1 && group.is_sorted_by(|a, b| a < b);
        for position in group {
            match graph.order.get(*position) {
                Some(n) if in_order && group_of[*n].is_none() => group_of.set(*n, Some(g)),
                _ => return Err(Error::invalid("a group of nodes that are not there, or are in another group")),
            }
        }
    }
    let uses = ValueUses::of(graph);
    let mut new = Rebuilt::new(id, graph);
    // Value, the group's last node, reason, bytes.
    let mut notes: Vec<(ValueId, Option<NodeId>, Reason, i64)> = Vec::new();
    for (position, (n, node)) in graph.ordered().enumerate() {
        let Some(group) = group_of[n].map(|g| &groups[g]) else {
            if node.operands().any(|v| new.map[v].is_none()) {
                return Err(Error::invalid("a node reads a result of a group before the group runs").at(graph, n));
            }
            let args = new.args(node);
            new.keep(node, args);
            continue;
        };
        if group.last() != Some(&position) {
            continue;
        }
        let members: Vec<NodeId> = group.iter().map(|p| graph.order[*p]).collect();
        let (body, operands, results) = body(graph, &uses, &members);
        if results.is_empty() || operands.iter().any(|v| new.map[*v].is_none()) {
            return Err(Error::invalid("a group reads what is made after it, or makes nothing").at(graph, n));
        }
        let saved = members.iter().flat_map(|m| &graph.nodes[*m].results).filter(|r| !results.contains(r));
        notes.push((results[results.len() - 1], None, Reason::Taken, saved.map(|r| bytes(graph, *r)).sum()));
        let body = program.graphs.push(body);
        let operands = operands.iter().map(|v| new.map[*v]).collect();
        let args = vec![Arg::Graph(body), Arg::Values(operands)];
        new.keep(&Node { op, results: results.into(), args: Vec::new(), origin: node.origin.clone() }, args);
        let made = &new.graph.nodes[*new.graph.order.last().expect("a node was added")];
        check_fused(program, &new.graph, made).map_err(|e| Error::from(e).at(graph, n))?;
    }
    for DeclinedProducer { value, root, reason } in declined {
        notes.push((*value, Some(*root), *reason, bytes(graph, *value)));
    }
    let mut maker: Table<ValueId, Option<NodeId>> = Table::with_capacity(new.graph.values.len());
    for (n, node) in new.graph.ordered() {
        node.results.iter().for_each(|r| maker.set(*r, Some(n)));
    }
    let made = |v: ValueId| new.map[v].and_then(|v| maker[v]);
    for (value, root, reason, bytes) in notes {
        // What stayed out has a node of its own, or is in another group.
        let Some(node) = made(value) else { continue };
        let first = |r: NodeId| graph.nodes[r].results.iter().find_map(|v| made(*v));
        let reason = match reason {
            Reason::StillRead { by: Some(reader) } => Reason::StillRead { by: first(reader) },
            other => other,
        };
        let over = root.and_then(|r| graph.nodes[r].results.iter().find_map(|v| new.map[*v]));
        remarks.push(Remark { graph: id, node, kind: RemarkKind::Fuse, reason, bytes, over });
    }
    new.finish(program);
    Ok(())
}

/// The graph of a group, its operands in the order of the graph's inputs, and the values that it returns.
fn body(graph: &Graph, uses: &ValueUses, group: &[NodeId]) -> (Graph, Vec<ValueId>, Vec<ValueId>) {
    let mut body = Graph::new();
    body.reserve(group.len(), group.len() + 1);
    let mut map: BTreeMap<ValueId, ValueId> = BTreeMap::new();
    let (mut operands, mut results) = (Vec::new(), Vec::new());
    let last = group.last().copied();
    // A head comes first.
    let is_head = |id: &&NodeId| graph.nodes[**id].op.def().epilogue.is_some();
    for &id in group.iter().filter(is_head).chain(group.iter().filter(|id| !is_head(id))) {
        let node = &graph.nodes[id];
        for v in node.operands() {
            if let std::collections::btree_map::Entry::Vacant(e) = map.entry(v) {
                let value = &graph.values[v];
                e.insert(body.add_input(value.name.clone(), value.ty.clone()));
                operands.push(v);
            }
        }
        let args = node.args.iter().map(|a| a.map_values(|v| map[v])).collect();
        let types = node.results.iter().map(|r| (graph.values[*r].name.clone(), graph.values[*r].ty.clone()));
        let made = body.add_node(node.op, args, types, node.origin.clone());
        for (old, new) in node.results.iter().zip(body.nodes[made].results.clone()) {
            map.insert(*old, new);
        }
        let leaves =
            |r: &&ValueId| uses.returned[**r] || uses.readers[**r].iter().any(|reader| !group.contains(reader));
        let mut kept: Vec<ValueId> = node.results.iter().filter(leaves).copied().collect();
        // The first result of the last node has the iteration space.
        if Some(id) == last {
            kept.reverse();
        }
        results.extend(kept);
    }
    body.outputs = results.iter().map(|v| Arg::Value(map[v])).collect();
    (body, operands, results)
}
