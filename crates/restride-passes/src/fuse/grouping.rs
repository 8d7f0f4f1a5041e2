//! Which nodes become groups.

use super::shape::{GroupShape, in_passes};
use super::{AGAIN, FuseOptions, body, bytes};
use restride_ir::{
    CollectTree, Graph, NodeId, Reason, ReuseKind, RowExtent, RowForm, RowSpace, Table, TileRule, Tiling, ValueId,
    call_may_trail, epilogue_rows, known_meta,
};
use std::collections::BTreeSet;

/// A producer that stayed out: its value, the group's last node, and why.
pub(super) struct DeclinedProducer {
    pub value: ValueId,
    pub root: NodeId,
    pub reason: Reason,
}

/// Who makes and reads the values of a graph.
pub(super) struct ValueUses {
    pub(super) at: Table<NodeId, usize>,
    pub(super) makers: Table<ValueId, Option<NodeId>>,
    pub(super) readers: Table<ValueId, Vec<NodeId>>,
    /// Values that the caller gets.
    pub(super) returned: Table<ValueId, bool>,
}

impl ValueUses {
    pub(super) fn of(graph: &Graph) -> ValueUses {
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

pub(super) struct Grouping<'a> {
    pub(super) graph: &'a Graph,
    pub(super) options: FuseOptions,
    pub(super) uses: ValueUses,
    pub(super) rules: Table<NodeId, Option<TileRule>>,
    /// Whether a node is a function of rows.
    in_rows: Table<NodeId, bool>,
    /// Whether the next group may have dimensions that are not cut because its calls join them.
    pub(super) joins: bool,
    /// Nodes before each position that are no views.
    computing: Vec<usize>,
    /// The group that a node is in.
    pub(super) taken: Table<NodeId, Option<NodeId>>,
    pub(super) groups: Vec<Vec<usize>>,
    pub(super) declined: Vec<DeclinedProducer>,
}

impl<'a> Grouping<'a> {
    pub(super) fn new(graph: &'a Graph, options: &FuseOptions) -> Self {
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

    pub(super) fn run(mut self) -> Self {
        for &root in self.graph.order.iter().rev() {
            if self.taken[root].is_some() || self.rules[root].is_none() || self.is_view(root) || !self.admits(root) {
                continue;
            }
            let group = self.group(root);
            let computes = group.iter().filter(|p| !self.is_view(self.graph.order[**p])).count();
            if computes > 1 {
                self.groups.push(group);
            } else {
                self.release(&group);
            }
        }
        self.groups.reverse();
        self
    }

    /// The positions of the group whose last node is `root`.
    fn group(&mut self, root: NodeId) -> Vec<usize> {
        let declined = self.declined.len();
        self.joins = !self.options.tiles;
        let (shape, group) = self.fitting(root, &BTreeSet::new());
        match shape {
            Some(shape) if self.options.siblings => self.with_siblings(root, shape, group, declined),
            _ => group,
        }
    }

    /// Nodes are in no group.
    pub(super) fn release(&mut self, group: &[usize]) {
        group.iter().for_each(|p| self.taken.set(self.graph.order[*p], None));
    }

    /// Whether calls join what a group does not cut, along rows that are neighbours in memory.
    fn joined(&self, shape: &GroupShape, group: &[usize]) -> bool {
        let graph = self.graph;
        let nodes = || group.iter().map(|p| graph.order[*p]);
        let calls = in_passes(graph, nodes()).into_iter();
        let Some(space) = RowSpace::of(graph, &shape.tiling, calls) else { return false };
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

    /// The group that grows from `root` and nodes beside it, with calls that join what it does not cut if it is of use, and otherwise
    /// without such dimensions.
    pub(super) fn fitting(&mut self, root: NodeId, beside: &BTreeSet<usize>) -> (Option<GroupShape>, Vec<usize>) {
        let declined = self.declined.len();
        let (shape, group) = self.grown(root, beside);
        if !self.joins || shape.as_ref().is_none_or(|s| !s.has_whole() || self.joined(s, &group)) {
            return (shape, group);
        }
        // Without calls that join what they do not cut, another group may be as large.
        self.release(&group);
        self.declined.truncate(declined);
        self.joins = false;
        self.grown(root, beside)
    }

    /// The group that grows from `root` and nodes beside it: its shape, and the positions of its nodes.
    fn grown(&mut self, root: NodeId, beside: &BTreeSet<usize>) -> (Option<GroupShape>, Vec<usize>) {
        let graph = self.graph;
        let Some(mut shape) = self.shape(root) else { return (None, Vec::new()) };
        self.taken.set(root, Some(root));
        let mut waiting: BTreeSet<usize> = self.producers(root);
        waiting.extend(beside);
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
    pub(super) fn admits(&self, id: NodeId) -> bool {
        self.options.tiles || self.in_rows[id] || self.is_view(id)
    }

    pub(super) fn is_view(&self, id: NodeId) -> bool {
        self.graph.nodes[id].op.def().view.is_some()
    }

    /// Positions of the nodes that make a node's operands.
    fn producers(&self, id: NodeId) -> BTreeSet<usize> {
        let makers = self.graph.nodes[id].operands().filter_map(|v| self.uses.makers[v]);
        makers.map(|m| self.uses.at[m]).collect_set()
    }

    /// The position where a node runs: with the last node of its group.
    pub(super) fn runs(&self, id: NodeId) -> usize {
        self.uses.at[self.taken[id].unwrap_or(id)]
    }

    /// Whether a value is read outside of a group, or returned.
    pub(super) fn leaves(&self, v: ValueId, root: NodeId) -> bool {
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
        let between = |r: &&NodeId| self.taken[**r] != Some(root) && self.runs(**r) < end;
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
        // A view with another tensor for its sizes runs before the group if its base is outside, and the group may make that tensor.
        if self.is_view(id) && (node.operands().count() > 1 || node.results.iter().any(|r| self.leaves(*r, root))) {
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
