//! Reorders nodes to lower the peak of live bytes.
//!
//! A value is live from the node that makes it to its last reader, so the order of nodes decides the peak. Two orders are
//! tried beside the program's own: from the front, always the node that leaves the fewest bytes live; from the back, always
//! the one that needs the fewest live before it. The better one is offered if its peak in a model of memory is lower than
//! that of the program's order. Views share their bases there, results the operands that die where an operator has a
//! licence, parts their `cat`, and outputs the caller's memory. The program is placed and planned in both orders to see the
//! real gain.
//!
//! Nodes with effects, run-time numbers or bodies are barriers: no node moves across them.

use crate::memory_model::MemoryModel;
use restride_ir::{NodeId, Program};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A program of known sizes in another order of the nodes of its main graph, if that should need less memory at once.
pub fn order(program: &Program) -> Option<Program> {
    let model = MemoryModel::new(program.graph());
    let regions = model.regions();
    let peak = model.own_peak();
    // No order needs less than its most demanding node alone.
    if peak <= model.floor() {
        return None;
    }
    let each = |pick: fn(&MemoryModel, Range<usize>) -> Vec<usize>| -> Vec<usize> {
        let mut out = Vec::with_capacity(model.nodes.len());
        regions.iter().for_each(|r| out.extend(pick(&model, r.clone())));
        out
    };
    let tried = [each(MemoryModel::backwards), each(MemoryModel::forwards)];
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

impl MemoryModel {
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
        // Remaining readers of each piece of memory; memory read after the region stays live.
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

    /// From the last node to the first, always the node that needs the fewest bytes live before it; of equal ones, the
    /// last.
    fn backwards(&self, region: Range<usize>) -> Vec<usize> {
        let start = region.start;
        let mut waits = vec![0usize; region.len()];
        for at in region.clone() {
            self.before[at].iter().filter(|b| **b >= start).for_each(|b| waits[b - start] += 1);
        }
        // Memory read after the region is live at its end.
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
                    // Other readers of the memory need no more for it.
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
