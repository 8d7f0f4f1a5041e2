//! Revision: an early choice may stand in the way of a later one that saves more. Each attempt notes such choices; the next
//! attempt goes without them, and the best placement is kept.

use super::Placed;
use super::places::Places;
use restride_ir::{BufferId, Graph, GraphId, Placement, Program, Step, Table, ValueId, carried_over};
use std::collections::BTreeSet;

/// Values that are to have memory of their own, at no hinted place and on no operand.
pub type Avoid = BTreeSet<(GraphId, ValueId)>;

/// One placement of a program.
pub(super) struct PlacementAttempt {
    pub placed: Placed,
    /// Values whose places stood in the way of something better.
    pub regrets: Avoid,
}

/// Programs of more nodes than this are placed twice at most, others four times.
const LARGE: usize = 10_000;

/// The best of a few attempts.
pub(super) fn best<E>(
    program: &Program,
    mut attempt: impl FnMut(&Avoid) -> Result<PlacementAttempt, E>,
) -> Result<Placed, E> {
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

/// Bytes that are moved, then bytes of buffers, of a graph and its bodies.
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
    let mut counted: Table<BufferId, bool> = Table::with_capacity(placement.buffers.len());
    for buffer in placement.steps.iter().flat_map(|s| placement.touched(s)) {
        if !counted[buffer] {
            counted.set(buffer, true);
            memory = memory.saturating_add(placement.buffers[buffer].bytes);
        }
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

/// Values that an attempt avoids, and values that the next one should avoid.
///
/// Invariant: only values in `saved` are regretted, and only for a move of more bytes than their own place saves.
pub(super) struct Revision<'a> {
    graph: GraphId,
    avoid: &'a Avoid,
    /// For values that share a place with another one by choice: the bytes of a move that this saves, 0 if it saves memory
    /// alone.
    saved: Table<ValueId, Option<i64>>,
    /// Values that kept the last place asked for from being written.
    pub in_the_way: Vec<ValueId>,
    /// Values whose places stood in the way of something better.
    pub regrets: Avoid,
}

impl<'a> Revision<'a> {
    pub fn new(graph: GraphId, avoid: &'a Avoid, values: usize) -> Self {
        Revision { graph, avoid, saved: Table::with_capacity(values), in_the_way: Vec::new(), regrets: Avoid::new() }
    }

    /// Revision of a body that is placed in the same attempt.
    pub fn of_body(&self, body: GraphId, values: usize) -> Self {
        Revision::new(body, self.avoid, values)
    }

    /// Whether a value is to have memory of its own.
    pub fn avoids(&self, v: ValueId) -> bool {
        self.avoid.contains(&(self.graph, v))
    }

    /// Notes the bytes of a move that the choice of a value's place saves.
    pub fn chose(&mut self, v: ValueId, saved: i64) {
        self.saved.set(v, Some(saved));
    }

    /// Notes that a move of `bytes` could not be saved because of the values in the way.
    pub fn regret(&mut self, bytes: i64, places: &Places) {
        for u in std::mem::take(&mut self.in_the_way) {
            let owner = places.owner(u);
            if self.saved[owner].is_some_and(|saved| saved < bytes) {
                self.regrets.insert((self.graph, owner));
            }
        }
    }
}
