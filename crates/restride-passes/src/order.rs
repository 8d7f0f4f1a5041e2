//! Nodes in an order that needs less memory at once.
//!
//! A value is there from the node that makes it to the last one that reads it, so that the order of nodes decides how much is
//! there at the peak. Two orders are tried beside the one that the program has: from the front, always next what leaves the
//! least behind; and from the back, always before it what needs the least to be there. The better one is offered if by a
//! model of memory its peak is lower than that of the order that is there: views lie on their bases, results on dying operands
//! where an operator has a licence for that, parts of a `cat` in it, outputs in the caller's memory. What that is worth is
//! known once the program is placed and planned in both orders.
//!
//! Only what computes tensors from tensors is moved, and not past anything else: what has an effect, learns or reads a number
//! that is only known at the run, or calls bodies, stays where it is, with what is before it and behind.

use restride_ir::{Arg, Graph, Node, NodeId, Program, Table, Type, ValueId, aligned};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A program of known sizes in another order of the nodes of its main graph, if that should need less memory at once.
pub fn order(program: &Program) -> Option<Program> {
    let model = Model::new(program.graph());
    let regions = model.regions();
    let there: Vec<usize> = (0..model.nodes.len()).collect();
    let peak = model.peak(&there);
    // No order needs less than its most demanding node alone.
    if peak <= model.floor() {
        return None;
    }
    let each = |pick: fn(&Model, Range<usize>) -> Vec<usize>| -> Vec<usize> {
        let mut out = Vec::with_capacity(model.nodes.len());
        regions.iter().for_each(|r| out.extend(pick(&model, r.clone())));
        out
    };
    let tried = [each(Model::backwards), each(Model::forwards)];
    let (least, best) = tried.into_iter().map(|o| (model.peak(&o), o)).min_by_key(|o| o.0)?;
    if least >= peak {
        return None;
    }
    let nodes: Vec<NodeId> = best.into_iter().map(|at| model.nodes[at].id).collect();
    let mut out = program.clone();
    let main = out.main;
    out.graphs[main].order = nodes;
    Some(out)
}

/// A node by its position in the order that is there.
struct Step {
    id: NodeId,
    /// Memory that it reads, each once.
    reads: Vec<usize>,
    /// Memory that it is the first to write.
    makes: Vec<usize>,
    /// It may be moved.
    free: bool,
    /// Results may lie where operands die.
    reuses: bool,
}

/// Values as the memory that they share.
struct Model {
    nodes: Vec<Step>,
    /// Size of each piece of memory; nothing for that of the caller.
    sizes: Vec<i64>,
    /// The nodes that read it.
    readers: Vec<Vec<usize>>,
    /// Positions of the nodes that a node needs to come after: those that make its operands.
    before: Vec<Vec<usize>>,
}

impl Model {
    fn new(graph: &Graph) -> Model {
        let mut model = Model {
            nodes: Vec::with_capacity(graph.order.len()),
            sizes: Vec::new(),
            readers: Vec::new(),
            before: Vec::with_capacity(graph.order.len()),
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
                    makes.push(own);
                    own
                });
                memory.set(r, Some(own));
            }
            reads.iter().for_each(|&m| model.readers[m].push(at));
            let def = node.op.def();
            let reuses = !def.reuse.is_empty() || def.movement.is_some();
            model.nodes.push(Step { id, reads, makes, free: free(graph, node), reuses });
            model.before.push(before);
        }
        // What the caller gets lies in the caller's memory.
        for v in graph.output_values() {
            if let Some(m) = memory[v] {
                model.sizes[m] = 0;
            }
        }
        model
    }

    fn add(&mut self, size: i64) -> usize {
        self.sizes.push(size);
        self.readers.push(Vec::new());
        self.sizes.len() - 1
    }

    fn sum(&self, memory: &[usize]) -> i64 {
        memory.iter().fold(0i64, |sum, &m| sum.saturating_add(self.sizes[m]))
    }

    fn readers_in(&self, m: usize, region: &Range<usize>) -> &[usize] {
        let all = &self.readers[m];
        &all[all.partition_point(|r| *r < region.start)..all.partition_point(|r| *r < region.end)]
    }

    /// Nodes that may change places with each other, and each of the others by itself.
    fn regions(&self) -> Vec<Range<usize>> {
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

    /// What a node needs while it runs: its operands and its results, those that may lie on operands not counted twice.
    fn floor(&self) -> i64 {
        let need = |n: &Step| {
            let (reads, makes) = (self.sum(&n.reads), self.sum(&n.makes));
            if n.reuses { reads.max(makes) } else { reads.saturating_add(makes) }
        };
        self.nodes.iter().map(need).max().unwrap_or(0)
    }

    /// The most that is there at once, in an order.
    fn peak(&self, order: &[usize]) -> i64 {
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
            // What nobody reads goes at once.
            now -= node.makes.iter().filter(|m| left[**m] == 0).map(|m| self.sizes[*m]).sum::<i64>();
        }
        most
    }

    /// Always next the node that leaves the least behind: of those equal, the one that came first.
    fn forwards(&self, region: Range<usize>) -> Vec<usize> {
        let start = region.start;
        let mut waits: Vec<usize> = Vec::with_capacity(region.len());
        let mut then: Vec<Vec<usize>> = vec![Vec::new(); region.len()];
        for at in region.clone() {
            let own = self.before[at].iter().filter(|b| **b >= start);
            own.clone().for_each(|&b| then[b - start].push(at));
            waits.push(own.count());
        }
        // How many nodes still to come read a piece of memory; what is read after the region stays.
        let mut left: BTreeMap<usize, usize> = BTreeMap::new();
        for at in region.clone() {
            for &m in &self.nodes[at].reads {
                let later = || self.readers[m].len() - self.readers[m].partition_point(|r| *r < start);
                left.entry(m).or_insert_with(later);
            }
        }
        let key = |at: usize, left: &BTreeMap<usize, usize>| {
            let node = &self.nodes[at];
            let gone = node.reads.iter().filter(|m| left.get(m) == Some(&1)).map(|m| self.sizes[*m]).sum::<i64>();
            (self.sum(&node.makes).saturating_sub(gone), at)
        };
        let mut keys: Vec<Option<(i64, usize)>> = vec![None; region.len()];
        let mut ready = BTreeSet::new();
        let mut done = vec![false; region.len()];
        for at in region.clone().filter(|at| waits[at - start] == 0) {
            keys[at - start] = Some(key(at, &left));
            ready.extend(keys[at - start]);
        }
        let mut out = Vec::with_capacity(region.len());
        while let Some((_, at)) = ready.pop_first() {
            out.push(at);
            done[at - start] = true;
            for m in &self.nodes[at].reads {
                let Some(n) = left.get_mut(m) else { continue };
                *n -= 1;
                // The last one to read it frees it now.
                if *n == 1
                    && let Some(&last) = self.readers_in(*m, &region).iter().find(|r| !done[**r - start])
                    && let Some(old) = keys[last - start]
                    && ready.remove(&old)
                {
                    keys[last - start] = Some(key(last, &left));
                    ready.extend(keys[last - start]);
                }
            }
            for &next in &then[at - start] {
                waits[next - start] -= 1;
                if waits[next - start] == 0 {
                    keys[next - start] = Some(key(next, &left));
                    ready.extend(keys[next - start]);
                }
            }
        }
        out
    }

    /// From the last node to the first, always the one before which the least needs to be there: of those equal, the one that
    /// came last.
    fn backwards(&self, region: Range<usize>) -> Vec<usize> {
        let start = region.start;
        let mut waits = vec![0usize; region.len()];
        for at in region.clone() {
            self.before[at].iter().filter(|b| **b >= start).for_each(|b| waits[b - start] += 1);
        }
        // What is read after the region is there at its end.
        let later = |m: usize| self.readers[m].last().is_some_and(|r| *r >= region.end);
        let mut there: BTreeMap<usize, bool> = BTreeMap::new();
        for at in region.clone() {
            self.nodes[at].reads.iter().chain(&self.nodes[at].makes).for_each(|&m| {
                there.entry(m).or_insert_with(|| later(m));
            });
        }
        let key = |at: usize, there: &BTreeMap<usize, bool>| {
            let node = &self.nodes[at];
            let comes = node.reads.iter().filter(|m| there.get(m) == Some(&false)).map(|m| self.sizes[*m]).sum::<i64>();
            (comes.saturating_sub(self.sum(&node.makes)), Reverse(at))
        };
        let mut keys: Vec<Option<(i64, Reverse<usize>)>> = vec![None; region.len()];
        let mut ready = BTreeSet::new();
        for at in region.clone().filter(|at| waits[at - start] == 0) {
            keys[at - start] = Some(key(at, &there));
            ready.extend(keys[at - start]);
        }
        let mut out = Vec::with_capacity(region.len());
        while let Some((_, Reverse(at))) = ready.pop_first() {
            out.push(at);
            keys[at - start] = None;
            for m in &self.nodes[at].reads {
                if there.insert(*m, true) == Some(false) {
                    // What else reads it needs nothing more for that.
                    for &r in self.readers_in(*m, &region) {
                        if let Some(old) = keys[r - start]
                            && ready.remove(&old)
                        {
                            keys[r - start] = Some(key(r, &there));
                            ready.extend(keys[r - start]);
                        }
                    }
                }
            }
            for &b in self.before[at].iter().filter(|b| **b >= start) {
                waits[b - start] -= 1;
                if waits[b - start] == 0 {
                    keys[b - start] = Some(key(b, &there));
                    ready.extend(keys[b - start]);
                }
            }
        }
        out.reverse();
        out
    }
}

fn bytes(graph: &Graph, v: ValueId) -> i64 {
    let Type::Tensor(t) = &graph.values[v].ty else { return 0 };
    let Some(meta) = t.known() else { return 0 };
    let elements = meta.layout.sizes.iter().fold(1i64, |n, &s| n.saturating_mul(s.max(0)));
    // Sums of these do not overflow.
    aligned(elements.saturating_mul(meta.dtype.size() as i64)).min(1 << 48)
}

/// Whether a node only computes tensors from tensors and numbers that are known.
fn free(graph: &Graph, node: &Node) -> bool {
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
