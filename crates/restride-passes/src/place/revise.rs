//! Undoing: a choice that was taken early may stand in the way of a later one that saves more. What stood in the way is
//! noted while a program is placed; then it is placed again without those choices, and the better placement is kept.

use super::{Placed, Placer};
use restride_ir::{Graph, GraphId, Placement, Program, Step, ValueId, carried_over};
use std::collections::BTreeSet;

/// Values that are to have memory of their own, not where they are wanted or on an operand.
pub type Avoid = BTreeSet<(GraphId, ValueId)>;

/// A placement and what it regrets.
pub(super) struct Attempt {
    pub placed: Placed,
    pub regrets: Avoid,
}

/// Programs of more nodes than this are placed twice at most, others four times.
const LARGE: usize = 10_000;

/// The best of a few attempts.
pub(super) fn best<E>(program: &Program, mut attempt: impl FnMut(&Avoid) -> Result<Attempt, E>) -> Result<Placed, E> {
    let mut avoid = Avoid::new();
    let first = attempt(&avoid)?;
    let (mut best, mut regrets) = (first.placed, first.regrets);
    let rounds = if program.graph().order.len() > LARGE { 1 } else { 3 };
    for _ in 0..rounds {
        let before = avoid.len();
        avoid.append(&mut regrets);
        if avoid.len() == before {
            break;
        }
        let next = attempt(&avoid)?;
        if cost(program, program.main, &next.placed.placement) < cost(program, program.main, &best.placement) {
            best = next.placed;
        }
        regrets = next.regrets;
    }
    Ok(best)
}

/// Bytes that are moved, then bytes of buffers.
pub(super) fn cost(program: &Program, id: GraphId, placement: &Placement) -> (i64, i64) {
    let graph = &program.graphs[id];
    let (mut moved, mut memory) = (0i64, 0i64);
    for step in &placement.steps {
        match step {
            Step::Move { value, .. } => moved = moved.saturating_add(bytes(graph, *value)),
            Step::Run { node, .. } if graph.nodes[*node].op.def().movement.is_some() => {
                let results = &graph.nodes[*node].results;
                moved = moved.saturating_add(results.iter().map(|r| bytes(graph, *r)).sum());
            }
            Step::Run { node, reads, writes } => {
                let copied = carried_over(&graph.nodes[*node], reads, writes);
                moved = copied.iter().fold(moved, |sum, v| sum.saturating_add(bytes(graph, *v)));
            }
            Step::Free { .. } => {}
        }
    }
    let touched: BTreeSet<_> = placement.steps.iter().flat_map(|s| placement.touched(s)).collect();
    for buffer in touched {
        memory = memory.saturating_add(placement.buffers[buffer].bytes);
    }
    for (body, nested) in &placement.nested {
        let (more, larger) = cost(program, *body, &nested.placement);
        moved = moved.saturating_add(more);
        memory = memory.saturating_add(larger);
    }
    (moved, memory)
}

fn bytes(graph: &Graph, v: ValueId) -> i64 {
    let known = graph.values[v].ty.tensor().and_then(|t| t.known());
    known.map_or(0, |m| m.layout.numel().saturating_mul(m.dtype.size() as i64))
}

impl Placer<'_> {
    /// Notes what a value's place was chosen for: the bytes of a move that it saves, 0 if only memory.
    pub(super) fn chose(&mut self, v: ValueId, saves: i64) {
        self.chosen.set(v, Some(saves));
    }

    /// Whether a value is to have memory of its own.
    pub(super) fn avoids(&self, v: ValueId) -> bool {
        self.avoid.contains(&(self.id, v))
    }

    /// A move of so many bytes could not be saved for what `may_write` met last.
    pub(super) fn regret(&mut self, bytes: i64) {
        for u in std::mem::take(&mut self.in_the_way) {
            let owner = self.owner[u].unwrap_or(u);
            if self.chosen[owner].is_some_and(|saves| saves < bytes) {
                self.regrets.insert((self.id, owner));
            }
        }
    }
}
