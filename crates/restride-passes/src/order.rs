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

use crate::memory::Model;
use restride_ir::{NodeId, Program};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A program of known sizes in another order of the nodes of its main graph, if that should need less memory at once.
pub fn order(program: &Program) -> Option<Program> {
    let model = Model::new(program.graph());
    let regions = model.regions();
    let peak = model.own_peak();
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

impl Model {
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
