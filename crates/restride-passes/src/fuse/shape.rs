//! The shape of a group under construction.

use super::grouping::Grouping;
use super::{FRAME, OPERANDS};
use restride_ir::{Graph, NodeId, RowForm, RowSpace, Tiling, ValueId, known_meta};
use std::collections::BTreeMap;

/// A group under construction.
#[derive(Clone)]
pub(super) struct GroupShape {
    /// Positions, the last first.
    pub(super) nodes: Vec<usize>,
    pub(super) tiling: Tiling,
    /// Values that only the group's calls read, and their element sizes.
    pub(super) values: Vec<(ValueId, i64)>,
    /// Bytes that these take in the smallest tile.
    pub(super) frame: i64,
    /// At most as many operands from outside.
    pub(super) operands: usize,
    pub(super) results: usize,
    pub(super) head: Option<NodeId>,
}

impl GroupShape {
    /// With another node before its own; `None` if the group can then not be computed in tiles.
    pub(super) fn with(&self, grouping: &Grouping<'_>, id: NodeId, root: NodeId) -> Option<GroupShape> {
        let (graph, node) = (grouping.graph, &grouping.graph.nodes[id]);
        let mut grown = self.clone();
        for r in node.results.iter().filter(|r| grouping.leaves(**r, root)) {
            grown.tiling.beside(graph, *r);
        }
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
            Some(RowSpace::of(graph, &grown.tiling, in_passes(graph, grown.in_order(graph)).into_iter())?)
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

    /// Its nodes in the order of the graph.
    pub(super) fn in_order<'a>(&'a self, graph: &'a Graph) -> impl Iterator<Item = NodeId> + 'a {
        self.nodes.iter().rev().map(|p| graph.order[*p])
    }

    /// Whether it has dimensions that are not cut.
    pub(super) fn has_whole(&self) -> bool {
        (0..self.tiling.sizes.len()).any(|d| !self.tiling.cut[d] && self.tiling.sizes[d] > 1)
    }
}

/// The nodes of a group in the order of its body. What reads a sum of the group comes behind all that reads none, so that calls on the
/// elements of a row share as few passes over it as they can.
pub(super) fn in_passes(graph: &Graph, nodes: impl Iterator<Item = NodeId>) -> Vec<NodeId> {
    let mut sums_before: BTreeMap<ValueId, usize> = BTreeMap::new();
    let mut ordered: Vec<(usize, NodeId)> = Vec::new();
    for id in nodes {
        let node = &graph.nodes[id];
        let before = node.operands().filter_map(|v| sums_before.get(&v)).copied().max().unwrap_or(0);
        let after = before + usize::from(matches!(RowForm::of(graph, node), Some(RowForm::Fold { .. })));
        sums_before.extend(node.results.iter().map(|r| (*r, after)));
        ordered.push((before, id));
    }
    ordered.sort_by_key(|(before, _)| *before);
    ordered.into_iter().map(|(_, id)| id).collect()
}
