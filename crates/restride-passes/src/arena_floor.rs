//! A lower bound of the arena that needs no placement.

use restride_ir::{Graph, Node, NodeId, OutputKind, Program, Table, ValueId, aligned, known_meta};

/// Bytes that the arena of a program has in any placement of its nodes in their order.
///
/// Each value that is read later needs its bytes. Counted once are values that may share cells while they are read: views, and
/// operands and results of operators that only move elements or call bodies. Not counted are scratch, values in the caller's
/// memory, and values that may be stored there while the caller does not need it: as many bytes as that memory has.
pub fn arena_floor(program: &Program) -> i64 {
    let graph = program.graph();
    let mut shared = SharedCells::of(graph);
    // Slots of time: while a node runs, and after it.
    let mut made: Table<ValueId, Option<usize>> = Table::new();
    let mut read: Table<ValueId, usize> = Table::new();
    for (at, (id, node)) in graph.ordered().enumerate() {
        let apart = keeps_apart(graph, id);
        node.operands().for_each(|v| read.set(v, if apart { 2 * at } else { (2 * at).saturating_sub(1) }));
        node.results.iter().for_each(|r| made.set(*r, Some(if apart { 2 * at } else { 2 * at + 1 })));
    }
    // Class, first and last slot.
    let mut lives: Vec<(ValueId, usize, usize)> = Vec::new();
    for (v, _) in graph.values.iter() {
        if let Some(start) = made[v].filter(|start| *start <= read[v]) {
            lives.push((shared.top(v), start, read[v]));
        }
    }
    lives.sort_unstable();
    let mut changes = vec![0i64; 2 * graph.order.len() + 2];
    let mut before: Option<(ValueId, usize)> = None;
    for (class, start, end) in lives {
        let from = before.filter(|b| b.0 == class).map_or(start, |b| start.max(b.1 + 1));
        if from <= end {
            let bytes = shared.bytes[class].unwrap_or(0);
            changes[from] += bytes;
            changes[end + 1] -= bytes;
            before = Some((class, end));
        }
    }
    let (mut now, mut most) = (0i64, 0i64);
    for change in changes {
        now += change;
        most = most.max(now);
    }
    aligned((most - callers(program)).max(0))
}

/// Whether a node's results are apart from its operands.
fn keeps_apart(graph: &Graph, id: NodeId) -> bool {
    let def = graph.nodes[id].op.def();
    def.reuse.is_empty() && !def.fused && !may_share(&graph.nodes[id])
}

/// Whether operands and results of a node may share cells while both are read.
fn may_share(node: &Node) -> bool {
    let def = node.op.def();
    node.op.is_view() || def.movement.is_some() || def.hop.is_some() || def.effectful
}

/// Bytes of outputs and of inputs that change.
fn callers(program: &Program) -> i64 {
    let graph = program.graph();
    let range = |v: ValueId| known_meta(graph, v).map_or(0, |m| m.layout.cell_range().end * m.dtype.size() as i64);
    let changed = program.signature.outputs.iter().filter_map(|o| match o.kind {
        OutputKind::Mutation(input) => Some(range(program.signature.inputs[input].value)),
        _ => None,
    });
    graph.output_values().map(range).chain(changed).sum()
}

/// Values in classes: those of different classes share no cell while both are read.
struct SharedCells {
    above: Table<ValueId, Option<ValueId>>,
    /// Bytes of the smallest value of each class, by the value that stands for it; `None` for the caller's memory.
    bytes: Table<ValueId, Option<i64>>,
}

impl SharedCells {
    fn of(graph: &Graph) -> SharedCells {
        let mut new = SharedCells { above: Table::new(), bytes: Table::new() };
        for (v, _) in graph.values.iter() {
            let known = known_meta(graph, v).ok();
            new.bytes.set(v, known.map(|m| m.layout.numel() * m.dtype.size() as i64));
        }
        graph.inputs.iter().copied().chain(graph.output_values()).for_each(|v| new.bytes.set(v, None));
        for (_, node) in graph.ordered().filter(|(_, n)| may_share(n)) {
            let mut values = node.operands().chain(node.results.iter().copied());
            let Some(first) = values.next() else { continue };
            values.for_each(|v| new.join(first, v));
        }
        new
    }

    fn top(&mut self, mut v: ValueId) -> ValueId {
        while let Some(next) = self.above[v] {
            if let Some(further) = self.above[next] {
                self.above.set(v, Some(further));
            }
            v = next;
        }
        v
    }

    fn join(&mut self, a: ValueId, b: ValueId) {
        let (a, b) = (self.top(a), self.top(b));
        if a != b {
            self.bytes.set(a, self.bytes[a].zip(self.bytes[b]).map(|(x, y)| x.min(y)));
            self.above.set(b, Some(a));
        }
    }
}
