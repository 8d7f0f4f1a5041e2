//! A model of memory: the pieces of memory that values share, with their sizes and readers.
//!
//! Views share their bases' memory, results that of dying operands if an operator has a licence for it, and outputs that of
//! the caller. Placement decides the real places; passes before it use this model.

use restride_ir::{Arg, Graph, Node, NodeId, ReuseKind, Table, Type, ValueId, aligned, call_may_trail};
use std::ops::Range;

/// A node at its position in the program's order.
#[derive(Clone)]
pub(crate) struct ModelNode {
    pub(crate) id: NodeId,
    /// Memory that it reads, each once.
    pub(crate) reads: Vec<usize>,
    /// Memory that it is the first to write.
    pub(crate) makes: Vec<usize>,
    /// It may be moved.
    pub(crate) free: bool,
    /// Results may take over memory of operands that die.
    pub(crate) reuses: bool,
}

/// Values as the memory that they share.
#[derive(Clone)]
pub(crate) struct MemoryModel {
    pub(crate) nodes: Vec<ModelNode>,
    /// Size of each piece of memory; nothing for that of the caller.
    pub(crate) sizes: Vec<i64>,
    /// The nodes that read each piece of memory.
    pub(crate) readers: Vec<Vec<usize>>,
    /// Positions of the nodes that a node needs to come after: those that make its operands.
    pub(crate) before: Vec<Vec<usize>>,
    /// The memory of each value.
    pub(crate) memory: Table<ValueId, Option<usize>>,
    /// The node that makes each value.
    pub(crate) made_by: Table<ValueId, Option<usize>>,
    /// Size of each piece of memory, also of outputs; 0 for inputs.
    pub(crate) whole: Vec<i64>,
    /// The node that is the first to write each piece of memory; nothing for inputs.
    pub(crate) maker: Vec<Option<usize>>,
}

impl MemoryModel {
    pub(crate) fn new(graph: &Graph) -> MemoryModel {
        let mut model = MemoryModel {
            nodes: Vec::with_capacity(graph.order.len()),
            sizes: Vec::new(),
            readers: Vec::new(),
            before: Vec::with_capacity(graph.order.len()),
            memory: Table::new(),
            made_by: Table::new(),
            whole: Vec::new(),
            maker: Vec::new(),
        };
        let mut memory: Table<ValueId, Option<usize>> = Table::new();
        let mut made_by: Table<ValueId, Option<usize>> = Table::new();
        for &v in &graph.inputs {
            memory.set(v, Some(model.add(0)));
        }
        for (at, (id, node)) in graph.ordered().enumerate() {
            let mut reads: Vec<usize> = node.operands().filter_map(|v| memory[v]).collect();
            reads.sort_unstable();
            reads.dedup();
            let mut before: Vec<usize> = node.operands().filter_map(|v| made_by[v]).collect();
            before.sort_unstable();
            before.dedup();
            let base = node.args.get(node.op.def().base as usize).and_then(|a| a.values().next().copied());
            let base = base.filter(|_| node.op.is_view()).and_then(|v| memory[v]);
            let mut makes = Vec::new();
            for &r in &node.results {
                made_by.set(r, Some(at));
                let own = base.unwrap_or_else(|| {
                    let own = model.add(bytes(graph, r));
                    model.maker[own] = Some(at);
                    makes.push(own);
                    own
                });
                memory.set(r, Some(own));
            }
            reads.iter().for_each(|&m| model.readers[m].push(at));
            let reuses = reuses(graph, id);
            model.nodes.push(ModelNode { id, reads, makes, free: free(graph, node), reuses });
            model.before.push(before);
        }
        model.whole.clone_from(&model.sizes);
        // Outputs are stored in the caller's memory.
        for v in graph.output_values() {
            if let Some(m) = memory[v] {
                model.sizes[m] = 0;
            }
        }
        (model.memory, model.made_by) = (memory, made_by);
        model
    }

    pub(crate) fn add(&mut self, size: i64) -> usize {
        self.sizes.push(size);
        self.readers.push(Vec::new());
        self.maker.push(None);
        self.sizes.len() - 1
    }

    /// Memory of inputs and outputs: the caller holds it anyway.
    pub(crate) fn is_callers(&self, m: usize) -> bool {
        self.sizes[m] == 0
    }

    pub(crate) fn sum(&self, memory: &[usize]) -> i64 {
        memory.iter().fold(0i64, |sum, &m| sum.saturating_add(self.sizes[m]))
    }

    pub(crate) fn readers_in(&self, m: usize, region: &Range<usize>) -> &[usize] {
        let all = &self.readers[m];
        &all[all.partition_point(|r| *r < region.start)..all.partition_point(|r| *r < region.end)]
    }

    /// Nodes that may change places with each other, and each of the others by itself.
    pub(crate) fn regions(&self) -> Vec<Range<usize>> {
        let mut out: Vec<Range<usize>> = Vec::new();
        let mut open = false;
        for (at, node) in self.nodes.iter().enumerate() {
            match out.last_mut() {
                Some(last) if node.free && open => last.end = at + 1,
                _ => out.push(at..at + 1),
            }
            open = node.free;
        }
        out
    }

    /// The largest number of bytes that one node needs while it runs: operands and results, or the larger of the two if
    /// results may take over operands.
    pub(crate) fn floor(&self) -> i64 {
        let need = |n: &ModelNode| {
            let (reads, makes) = (self.sum(&n.reads), self.sum(&n.makes));
            if n.reuses { reads.max(makes) } else { reads.saturating_add(makes) }
        };
        self.nodes.iter().map(need).max().unwrap_or(0)
    }

    /// The peak of live bytes in the program's order.
    pub(crate) fn own_peak(&self) -> i64 {
        self.peak(&self.own_order())
    }

    /// The positions of all nodes, in the order of the program.
    pub(crate) fn own_order(&self) -> Vec<usize> {
        (0..self.nodes.len()).collect()
    }

    /// The peak of live bytes in an order.
    pub(crate) fn peak(&self, order: &[usize]) -> i64 {
        let mut left: Vec<usize> = self.readers.iter().map(Vec::len).collect();
        let (mut now, mut most) = (0i64, 0i64);
        for &at in order {
            let node = &self.nodes[at];
            let mut gone = 0i64;
            for &m in &node.reads {
                left[m] -= 1;
                if left[m] == 0 {
                    gone = gone.saturating_add(self.sizes[m]);
                }
            }
            let made = self.sum(&node.makes);
            let over = if node.reuses { made.min(gone) } else { 0 };
            now = now.saturating_add(made);
            most = most.max(now - over);
            now -= gone;
            // Results without readers are freed at once.
            now -= node.makes.iter().filter(|m| left[**m] == 0).map(|m| self.sizes[*m]).sum::<i64>();
        }
        most
    }
}

pub(crate) fn bytes(graph: &Graph, v: ValueId) -> i64 {
    let Type::Tensor(t) = &graph.values[v].ty else { return 0 };
    let Some(meta) = t.known() else { return 0 };
    let elements = meta.layout.sizes.iter().fold(1i64, |n, &s| n.saturating_mul(s.max(0)));
    // Sums of these do not overflow.
    aligned(elements.saturating_mul(meta.dtype.size() as i64)).min(1 << 48)
}

/// Whether results may take over operands that die, judged by sizes.
fn reuses(graph: &Graph, id: NodeId) -> bool {
    let def = graph.nodes[id].op.def();
    let holds = |kind: ReuseKind| match kind {
        ReuseKind::Trailing => call_may_trail(graph, id, &[]),
        _ => true,
    };
    def.fused || def.movement.is_some() || def.reuse.iter().any(|l| holds(l.kind))
}

/// Whether a node only computes tensors from tensors and numbers that are known.
pub(crate) fn free(graph: &Graph, node: &Node) -> bool {
    let def = node.op.def();
    let number = |a: &Arg| a.scalars().iter().any(|e| e.constant().is_none());
    let tensor = |v: ValueId| graph.values[v].ty.tensor().is_some_and(|t| t.known().is_some());
    !def.effectful
        && def.hop.is_none()
        && !node.results.is_empty()
        && !node.args.iter().any(number)
        && node.operands().all(tensor)
        && node.results.iter().all(|r| tensor(*r))
}
