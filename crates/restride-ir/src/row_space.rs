//! Row spaces of fused bodies. All calls of such a body are functions of rows ([`RowForm`]), and reductions among them join the elements
//! of a row.
//!
//! What the reductions of a body join is one row. A call works on the elements of the row or once a row, and calls run in the order of
//! the body, in passes over the row: what a pass joins is there when the next one begins.

use crate::{Graph, Node, NodeId, RowForm, Tiling, ValueId, known_meta};
use smallvec::SmallVec;

/// What a call of a body works on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowExtent {
    /// The elements of the row, in the pass of this number.
    Elements(usize),
    /// As `Elements`, which it joins.
    Joined(usize),
    /// What a row has one of, after the passes before this number.
    Once(usize),
}

impl RowExtent {
    /// The number of the pass.
    pub fn pass(self) -> usize {
        match self {
            RowExtent::Elements(pass) | RowExtent::Joined(pass) | RowExtent::Once(pass) => pass,
        }
    }
}

/// The row of a body that has one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowSpace {
    /// Dimensions of the iteration space that are the row, slowest first.
    pub row: SmallVec<[usize; 4]>,
    /// Elements of the row.
    pub len: i64,
    /// What each call works on, in the order of the body; `None` for a view.
    pub calls: Vec<Option<RowExtent>>,
    /// Values whose elements are read in a later pass than the one that makes them: whole rows of them are kept.
    pub kept: SmallVec<[ValueId; 4]>,
    /// Whether a call joins elements.
    pub joins: bool,
}

impl RowSpace {
    /// The row of some nodes in the order of a body, if they are functions of rows and the dimensions that are not cut are one row.
    pub fn of(graph: &Graph, tiling: &Tiling, nodes: impl Iterator<Item = NodeId>) -> Option<RowSpace> {
        let whole = |d: &usize| !tiling.cut[*d] && tiling.sizes[*d] != 1;
        let row: SmallVec<[usize; 4]> = (0..tiling.sizes.len()).filter(whole).collect();
        let len = row.iter().fold(1i64, |n, d| n.saturating_mul(tiling.sizes[*d]));
        if row.is_empty() || len == 0 {
            return None;
        }
        let space = RowSpace { row, len, calls: Vec::new(), kept: SmallVec::new(), joins: false };
        let mut maker = RowSpaceMaker { graph, tiling, space, made: SmallVec::new(), pass: 0, ended: false };
        for id in nodes {
            let extent = maker.extent(&graph.nodes[id])?;
            maker.space.calls.push(extent);
        }
        Some(maker.space).filter(|s| len.saturating_mul(s.kept.len() as i64) <= RowSpace::KEPT)
    }

    /// Most elements that are kept of a row.
    pub const KEPT: i64 = 12288;

    /// Passes over the elements of the row.
    pub fn passes(&self) -> usize {
        let elements = self.calls.iter().flatten().filter(|c| !matches!(c, RowExtent::Once(_)));
        elements.map(|c| c.pass() + 1).max().unwrap_or(0)
    }
}

struct RowSpaceMaker<'a> {
    graph: &'a Graph,
    tiling: &'a Tiling,
    space: RowSpace,
    /// Of values that calls and views of the body make.
    made: SmallVec<[(ValueId, RowExtent); 8]>,
    /// The pass that calls on elements are in.
    pass: usize,
    /// Whether a call that runs once a row has ended it.
    ended: bool,
}

impl RowSpaceMaker<'_> {
    /// The dimensions of the space that a value goes along; `None` where it does not go along one by index.
    fn along(&self, v: ValueId) -> Option<SmallVec<[usize; 6]>> {
        let sizes = known_meta(self.graph, v).ok()?.layout.sizes;
        let follows = self.tiling.follows(v);
        let long = sizes.iter().enumerate().filter(|(_, n)| **n != 1);
        long.map(|(i, _)| follows.get(i).copied().flatten().map(usize::from)).collect()
    }

    /// How many dimensions of the row a value goes along.
    fn over(&self, v: ValueId) -> Option<usize> {
        Some(self.along(v)?.iter().filter(|d| self.space.row.contains(d)).count())
    }

    fn maker(&self, v: ValueId) -> Option<RowExtent> {
        self.made.iter().find(|(own, _)| *own == v).map(|(_, extent)| *extent)
    }

    /// What a node works on: `Some(None)` for a view, `None` if it is no function of rows.
    fn extent(&mut self, node: &Node) -> Option<Option<RowExtent>> {
        let &[result] = &node.results[..] else { return None };
        if node.op.def().view.is_some() {
            let base = node.operands().next().and_then(|v| self.maker(v));
            self.made.extend(base.map(|extent| (result, extent)));
            return Some(None);
        }
        let form = RowForm::of(self.graph, node)?;
        let all = self.space.row.len();
        let operands: SmallVec<[usize; 4]> = node.operands().map(|v| self.over(v)).collect::<Option<_>>()?;
        let extent = match (form, self.over(result)?) {
            (RowForm::Fold { .. }, 0) => {
                self.joined(node.operands().next()?)?;
                RowExtent::Joined(self.next(node))
            }
            (RowForm::Fold { .. } | RowForm::Scale { .. }, _) => return None,
            (_, n) if n == all => RowExtent::Elements(self.next(node)),
            (_, 0) if operands.iter().all(|n| *n == 0) => {
                self.ended = true;
                RowExtent::Once(self.pass + 1)
            }
            _ => return None,
        };
        let pass = extent.pass();
        for v in node.operands() {
            if matches!(self.maker(v), Some(RowExtent::Elements(p)) if p != pass) && !self.space.kept.contains(&v) {
                self.space.kept.push(v);
            }
        }
        self.made.push((result, extent));
        Some(Some(extent))
    }

    /// The pass of a call on elements.
    fn next(&mut self, node: &Node) -> usize {
        let joined = |v| matches!(self.maker(v), Some(RowExtent::Joined(p)) if p == self.pass);
        if self.ended || node.operands().any(joined) {
            self.pass += 1;
        }
        self.ended = false;
        self.pass
    }

    /// A call joins these elements: the row is its innermost dimensions, in their order.
    fn joined(&mut self, v: ValueId) -> Option<()> {
        let along = self.along(v)?;
        let own = &along[along.len().checked_sub(self.space.row.len())?..];
        if !own.iter().all(|d| self.space.row.contains(d)) || self.space.joins && own != &self.space.row[..] {
            return None;
        }
        self.space.row = own.into();
        self.space.joins = true;
        Some(())
    }
}
