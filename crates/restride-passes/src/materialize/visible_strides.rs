//! Visible strides: views and parts of wholes whose layouts show later, weighed against copies of them.

use super::{ExportForm, MadeGraph, MaterializeContext, Materializer, made};
use restride_ir::{CollectTree, GraphId, Node, NodeId, Result, Table, ValueId};
use std::collections::BTreeSet;

/// How often a graph is made anew with more copies kept: keeping one can change later values.
const ROUNDS: usize = 4;

/// Where strides showed that are not the declared ones, and why.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct VisibleStrides {
    /// Copies that were left out, and parts of wholes, that the strides follow from.
    causes: BTreeSet<ValueId>,
    /// Bytes of these.
    cause_bytes: i64,
    /// Bytes of the values that show.
    bytes: i64,
    count: usize,
}

impl VisibleStrides {
    /// Whether no strides show but those that are declared.
    pub(super) fn none(&self) -> bool {
        self.count == 0
    }
}

/// A graph in a form. Where a copy that is left out costs one further on that is as large, it is kept; in a program that
/// stays functional, which has no words for the other, always.
pub(super) fn with_fewest_copies(ctx: &MaterializeContext<'_>, id: GraphId, form: ExportForm) -> Result<MadeGraph> {
    let mut kept = BTreeSet::new();
    let mut best = made(ctx, id, form, &kept)?;
    for _ in 0..ROUNDS {
        let shown = &best.shown;
        if shown.causes.is_empty() || form != ExportForm::Views && shown.cause_bytes > shown.bytes {
            break;
        }
        kept.extend(&shown.causes);
        let next = made(ctx, id, form, &kept)?;
        if form != ExportForm::Views && next.shown.bytes + shown.cause_bytes > shown.bytes {
            break;
        }
        best = next;
    }
    Ok(best)
}

impl Materializer<'_> {
    /// The causes of the visible strides.
    pub(super) fn shown(&self) -> VisibleStrides {
        if self.showing.is_empty() {
            return VisibleStrides::default();
        }
        let mut makers: Table<ValueId, Option<NodeId>> = Table::new();
        for (id, node) in self.old.ordered() {
            node.results.iter().for_each(|r| makers.set(*r, Some(id)));
        }
        let showing: BTreeSet<ValueId> = self.showing.iter().copied().collect_set();
        let mut seen = BTreeSet::new();
        let mut todo: Vec<ValueId> = showing.iter().copied().collect();
        let mut causes = BTreeSet::new();
        while let Some(v) = todo.pop() {
            if !seen.insert(v) {
                continue;
            }
            if self.viewed.contains(&v) || self.parts.is_in_place(v) {
                causes.insert(v);
                continue;
            }
            let node: Option<&Node> = makers[v].map(|id| &self.old.nodes[id]);
            todo.extend(node.into_iter().flat_map(Node::operands).filter(|o| self.differs_from_declared(*o)));
        }
        VisibleStrides {
            cause_bytes: causes.iter().map(|v| self.old_bytes(*v)).sum(),
            bytes: showing.iter().map(|v| self.old_bytes(*v)).sum(),
            count: showing.len(),
            causes,
        }
    }

    /// Whether a value's memory is, or may be, laid out otherwise than declared.
    fn differs_from_declared(&self, old: ValueId) -> bool {
        match (self.old.values[old].ty.tensor(), self.map[old]) {
            (Some(want), Some(new)) => {
                !self.has_strides_of(new, want) || self.new.tensor(new).layout.offset != want.layout.offset
            }
            _ => false,
        }
    }

    fn old_bytes(&self, old: ValueId) -> i64 {
        self.map[old].map_or(0, |new| self.bytes(new))
    }
}
