//! Siblings: calls that read what a group reads or makes, run before its last node and feed none of its calls. In the group they read
//! it from the first cache; everything that reads their own results comes after the group.

use super::grouping::Grouping;
use super::shape::GroupShape;
use restride_ir::{CollectTree, NodeId, ValueId, known_meta};
use std::collections::BTreeSet;

/// Readers of a value that are looked at, the nearest first.
const READERS: usize = 4;
/// Most times that a group grows anew with siblings.
const TRIALS: usize = 4;

impl Grouping<'_> {
    /// A group with its siblings. What was declined since `declined` stayed out of this group.
    pub(super) fn with_siblings(
        &mut self,
        root: NodeId,
        mut shape: GroupShape,
        mut group: Vec<usize>,
        declined: usize,
    ) -> Vec<usize> {
        let (mut beside, mut seen) = (BTreeSet::new(), BTreeSet::new());
        for _ in 0..TRIALS {
            if shape.head.is_some() {
                break;
            }
            let Some(cone) = self.sibling(root, &shape, &mut seen) else { break };
            let wanted: BTreeSet<usize> = beside.union(&cone).copied().collect_set();
            self.release(&group);
            let before = self.declined.len();
            let joins = self.joins;
            let (grown, larger) = self.fitting(root, &wanted);
            let has = |p: &usize| larger.binary_search(p).is_ok();
            match grown.filter(|_| wanted.iter().chain(&group).all(has)) {
                Some(s) => {
                    (shape, group, beside) = (s, larger, wanted);
                    // What stayed out of the smaller group may be in this one.
                    self.declined.drain(declined..before);
                }
                None => {
                    self.release(&larger);
                    self.declined.truncate(before);
                    self.joins = joins;
                    group.iter().for_each(|p| self.taken.set(self.graph.order[*p], Some(root)));
                }
            }
        }
        group
    }

    /// A call that reads a large value of the group and all that reads its results before the group runs, as positions.
    fn sibling(&self, root: NodeId, shape: &GroupShape, seen: &mut BTreeSet<NodeId>) -> Option<BTreeSet<usize>> {
        let (graph, end) = (self.graph, self.uses.at[root]);
        let space: i64 = shape.tiling.sizes.iter().product();
        let large = |v: &ValueId| known_meta(graph, *v).is_ok_and(|m| m.layout.numel() >= space);
        let nodes = shape.nodes.iter().map(|p| &graph.nodes[graph.order[*p]]);
        let values: BTreeSet<ValueId> = nodes.flat_map(|n| n.operands().chain(n.results.iter().copied())).collect_set();
        for v in values.into_iter().filter(large) {
            let readers = &self.uses.readers[v];
            let earlier = readers.partition_point(|r| self.uses.at[*r] < end);
            for &reader in readers[..earlier].iter().rev().take(READERS) {
                if self.taken[reader].is_none() && seen.insert(reader) {
                    let room = self.options.most.saturating_sub(shape.nodes.len());
                    if let Some(cone) = self.cone(reader, end, room) {
                        return Some(cone);
                    }
                }
            }
        }
        None
    }

    /// A node and what reads its results, and theirs, before a position; `None` if some of them cannot be in a group.
    fn cone(&self, from: NodeId, end: usize, room: usize) -> Option<BTreeSet<usize>> {
        let (mut cone, mut waiting) = (BTreeSet::new(), vec![from]);
        while let Some(id) = waiting.pop() {
            if self.rules[id].is_none() || !self.admits(id) || self.taken[id].is_some() {
                return None;
            }
            if !cone.insert(self.uses.at[id]) {
                continue;
            }
            if cone.len() > room {
                return None;
            }
            let readers = self.graph.nodes[id].results.iter().flat_map(|r| &self.uses.readers[*r]);
            waiting.extend(readers.filter(|r| self.runs(**r) < end));
        }
        Some(cone)
    }
}
