//! Numbers of compiling: counts, bytes, times, and the memory plan.

use super::exchanges::ExchangeCounts;
use super::{Prepared, bytes_of, only_moves, spans};
use crate::compile::Times;
use crate::counts::Counts;
use crate::prepare::{PreparedSegment, UpperBound};
use restride_ir::{
    Buffer, BufferKind, GraphId, Id, InputKind, Live, OutputKind, Place, Placement, Program, RemarkKind, Step, ValueId,
    carried_over, fused_body, lives,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Decisions of placement in numbers, with bodies of higher-order operators (each counted once).
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct PlacedCounts {
    /// Steps that run.
    pub steps: usize,
    /// Results that took over an operand's memory.
    pub in_place: usize,
    /// Results that are views at no cost.
    pub views: usize,
    /// Steps that only move elements.
    pub copies: usize,
    /// Bytes that these write.
    pub copy_bytes: i64,
    /// Operators that run inside of fused steps.
    pub fused: usize,
    /// Bytes that the steps of one run read and write, each operand and result once.
    pub moved_bytes: i64,
    /// Of these, the bytes in the arena.
    pub moved_arena_bytes: i64,
    /// Declined candidates.
    pub missed: usize,
    /// Bytes that taking them would have saved.
    pub missed_bytes: i64,
}

/// Memory of a run, in bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct PlanCounts {
    /// Intermediates and scratch.
    pub arena_bytes: i64,
    /// Buffers and parameters that the program changes.
    pub state_bytes: i64,
    /// Values that are computed once from weights, beside the weights.
    pub constant_bytes: i64,
    /// Weights in the form in which products read them, beside the weights.
    pub packed_bytes: i64,
    /// Outputs.
    pub output_bytes: i64,
    /// Largest sum of arena bytes that live at one step.
    pub lower_bound_bytes: i64,
    /// No arena is smaller than this: the lower bound, the largest buffer, or more where a search excluded all smaller arenas.
    pub at_least_bytes: i64,
    /// Whether the arena is proved as small as it can be.
    pub optimal: bool,
    /// Upper bound of the arena over all input sizes; `None` where it is unbounded, and in a plan table.
    pub upper_bound_bytes: Option<i64>,
}

/// The contents of one of the memories that the arena consists of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryCounts {
    /// Its name.
    pub name: String,
    /// Bytes that it has; `None` for no limit.
    pub capacity: Option<i64>,
    /// Bytes that the plan uses of it.
    pub bytes: i64,
    /// Bytes that the steps of one run read and write in it.
    pub traffic: i64,
    /// How many buffers are stored in it.
    pub buffers: usize,
}

/// The memories of a plan, fastest first.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Memories {
    /// Each of them.
    pub all: Vec<MemoryCounts>,
    /// No assignment of these buffers has less traffic outside of the first memory.
    pub spilled_at_least: i64,
}

impl Memories {
    /// Traffic outside of the first memory, in bytes.
    pub fn spilled(&self) -> i64 {
        self.all.iter().skip(1).map(|m| m.traffic).sum()
    }
}

/// Numbers of a program that was compiled for certain inputs.
#[derive(Clone, Debug)]
pub struct Report {
    /// Name of the program.
    pub program: String,
    /// The program as exported.
    pub imported: Counts,
    /// Nodes of the functional program.
    pub functional_nodes: usize,
    /// Its declared mutations.
    pub mutated: usize,
    /// Decisions of placement.
    pub placed: PlacedCounts,
    /// Exchanges with other ranks.
    pub exchanges: ExchangeCounts,
    /// Memory.
    pub plan: PlanCounts,
    /// The memories that the arena consists of, where some were named.
    pub memories: Memories,
    /// Why the arena has no bound over all sizes, where it has none.
    pub unbounded: Option<String>,
    /// Nodes whose results tell sizes: values after one get their memory when it has run.
    pub learns: Vec<String>,
    /// Nodes that run again for a budget, and the bytes that they make.
    pub again: (usize, i64),
    /// Whether the checkers ran; they found nothing then.
    pub checked: bool,
    /// Times of the parts.
    pub times: Times,
}

/// One buffer of a memory plan.
#[derive(Clone, Debug)]
pub struct PlanRow {
    /// The segment, in a program that is cut where data tells sizes.
    pub segment: usize,
    /// Offset in the arena, or in the memory where some were named, in bytes.
    pub offset: i64,
    /// The memory that it is stored in, where some were named.
    pub memory: Option<String>,
    /// Size in bytes.
    pub bytes: i64,
    /// First and last step that touches it.
    pub steps: (usize, usize),
    /// Which bytes of it are needed when.
    pub lives: Vec<Live>,
    /// Values in it, in program order.
    pub values: Vec<String>,
}

/// A memory plan.
#[derive(Clone, Debug)]
pub struct PlanTable {
    /// Totals.
    pub totals: PlanCounts,
    /// The memories that the arena consists of, where some were named.
    pub memories: Memories,
    /// Buffers of the arena, by offset.
    pub rows: Vec<PlanRow>,
}

impl Prepared {
    /// The program's counts, bytes and times.
    ///
    /// ```
    /// # use restride::{CompileOptions, Compiled, OpenOptions};
    /// # let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/examples/llama_decode.pt2"));
    /// let program = restride::open(path, &OpenOptions::default())?;
    /// let report = Compiled::new(program, None, &CompileOptions::default())?.prepare(None)?.report();
    /// assert!(report.imported.mutations > 0 && report.checked);
    /// println!("{} steps in {} bytes", report.placed.steps, report.plan.arena_bytes);
    /// # Ok::<(), restride::Error>(())
    /// ```
    pub fn report(&self) -> Report {
        let (compiled, segments) = (&self.compiled, &self.segments[..]);
        let functional = compiled.functional();
        let mut times = Times { functionalize: compiled.functionalize_time(), ..Times::default() };
        let mut placed = PlacedCounts::default();
        for s in segments {
            times.simplify += s.times.simplify;
            times.fuse += s.times.fuse;
            times.place += s.times.place;
            times.check += s.times.check;
            times.plan += s.times.plan;
            count_steps(&s.program, s.program.main, &s.placement, &mut placed);
            count_remarks(s, &mut placed);
        }
        let bound = compiled.upper_bound();
        let unbounded = match bound {
            UpperBound::Bytes(_) => None,
            UpperBound::Unknown(why) => Some(why.clone()),
        };
        let again = segments.iter().flat_map(|s| &s.remarks).filter(|r| r.kind == RemarkKind::ComputeAgain);
        let again = again.fold((0, 0i64), |(n, bytes), r| (n + 1, bytes.saturating_add(r.bytes)));
        let mutated = functional.signature.outputs.iter().filter(|o| matches!(o.kind, OutputKind::Mutation(_))).count();
        Report {
            program: functional.name.to_string(),
            imported: compiled.imported(),
            functional_nodes: Counts::of(functional).nodes,
            mutated,
            placed,
            exchanges: super::exchanges::counts(segments),
            plan: PlanCounts { upper_bound_bytes: bound.bytes(), ..totals(segments) },
            memories: memories(segments),
            unbounded,
            learns: compiled.learns(),
            again,
            checked: compiled.options().check,
            times,
        }
    }

    /// The memory plan as data.
    ///
    /// ```
    /// # use restride::{CompileOptions, Compiled, OpenOptions};
    /// # let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/examples/vit_small.pt2"));
    /// let program = restride::open(path, &OpenOptions::default())?;
    /// let plan = Compiled::new(program, None, &CompileOptions::default())?.prepare(None)?.plan_table();
    /// for row in &plan.rows {
    ///     println!("{} bytes at {} hold {}", row.bytes, row.offset, row.values.join(", "));
    ///     assert!(row.offset + row.bytes <= plan.totals.arena_bytes);
    /// }
    /// # Ok::<(), restride::Error>(())
    /// ```
    pub fn plan_table(&self) -> PlanTable {
        let rows = self.segments.iter().enumerate().flat_map(|(i, s)| plan_rows(i, s)).collect();
        PlanTable { totals: totals(&self.segments), memories: memories(&self.segments), rows }
    }
}

fn plan_rows(number: usize, segment: &PreparedSegment) -> Vec<PlanRow> {
    let placement = &segment.placement;
    let graph = segment.program.graph();
    let (spans, mut lives) = (spans(placement), lives(graph, placement));
    let mut values: Vec<Vec<String>> = vec![Vec::new(); placement.buffers.len()];
    let all: Vec<ValueId> =
        graph.inputs.iter().copied().chain(graph.ordered().flat_map(|(_, n)| n.results.iter().copied())).collect();
    for v in all {
        if let Some(place) = &placement.places[v] {
            values[place.buffer.index()].push(graph.values[v].name.to_string());
        }
    }
    for (node, buffer) in &placement.scratch {
        let result = graph.nodes[*node].results.first().map_or("node", |r| &*graph.values[*r].name);
        values[buffer.index()].push(format!("scratch of {result}"));
    }
    let mut rows = Vec::new();
    for (id, buffer) in placement.buffers.iter() {
        let (Some(offset), Some(steps)) = (segment.plan.offsets[id], spans[id.index()]) else { continue };
        let (values, lives) = (std::mem::take(&mut values[id.index()]), std::mem::take(lives.entry(id)));
        let space = segment.plan.memory_at(offset);
        let offset = offset - space.map_or(0, |m| m.start);
        let memory = space.map(|m| m.name.clone());
        rows.push(PlanRow { segment: number, offset, memory, bytes: buffer.bytes, steps, lives, values });
    }
    let rank = |r: &PlanRow| segment.plan.memories.iter().position(|m| Some(&m.name) == r.memory.as_ref());
    rows.sort_by_key(|r| (rank(r), r.offset, r.steps));
    rows
}

/// The memories that serve all segments: the most bytes of each, and the traffic of a run.
fn memories(segments: &[Arc<PreparedSegment>]) -> Memories {
    let mut out = Memories::default();
    for p in segments {
        out.spilled_at_least = out.spilled_at_least.saturating_add(p.plan.spilled_at_least);
        for (k, m) in p.plan.memories.iter().enumerate() {
            if out.all.len() == k {
                let (name, capacity) = (m.name.clone(), m.capacity);
                out.all.push(MemoryCounts { name, capacity, bytes: 0, traffic: 0, buffers: 0 });
            }
            let counts = &mut out.all[k];
            counts.bytes = counts.bytes.max(m.bytes);
            counts.traffic = counts.traffic.saturating_add(m.traffic);
            let here = |offset: i64| p.plan.memory_at(offset).is_some_and(|at| at.name == m.name);
            let spans = spans(&p.placement);
            let stored =
                p.placement.buffers.iter().filter(|(id, b)| {
                    b.bytes > 0 && spans[id.index()].is_some() && p.plan.offsets[*id].is_some_and(here)
                });
            counts.buffers += stored.count();
        }
    }
    out
}

fn totals(segments: &[Arc<PreparedSegment>]) -> PlanCounts {
    let mut out = PlanCounts::default();
    // Segments that need the same value share it.
    let mut seen = BTreeSet::new();
    for value in segments.iter().filter_map(|s| s.constants.as_ref()).flat_map(|c| &c.values) {
        if seen.insert(&value.key) {
            *(if value.packed { &mut out.packed_bytes } else { &mut out.constant_bytes }) += value.bytes;
        }
    }
    for p in segments {
        out.arena_bytes = out.arena_bytes.max(p.plan.arena_bytes);
        out.lower_bound_bytes = out.lower_bound_bytes.max(p.plan.lower_bound_bytes);
        out.at_least_bytes = out.at_least_bytes.max(p.plan.at_least_bytes);
        for (_, buffer) in p.placement.buffers.iter() {
            if let Buffer { kind: BufferKind::Output(_), bytes } = buffer {
                out.output_bytes += bytes;
            }
        }
    }
    // One arena serves all segments.
    out.optimal = out.arena_bytes == out.at_least_bytes;
    // The last segment has the whole signature; an earlier one may write some of it already.
    let Some(last) = segments.last() else { return out };
    for spec in &last.program.signature.outputs {
        let OutputKind::Mutation(i) = spec.kind else { continue };
        let input = &last.program.signature.inputs[i];
        if matches!(input.kind, InputKind::Parameter(_) | InputKind::Buffer { .. } | InputKind::Constant(_)) {
            out.state_bytes += bytes_of(&last.program.graph().values[input.value].ty);
        }
    }
    out
}

fn count_steps(program: &Program, graph: GraphId, placement: &Placement, out: &mut PlacedCounts) {
    let values = &program.graphs[graph];
    let mut moves = |place: &Place, bytes: i64| {
        out.moved_bytes += bytes;
        if placement.buffers[place.buffer].kind == BufferKind::Arena {
            out.moved_arena_bytes += bytes;
        }
    };
    for step in &placement.steps {
        let bytes = |v: &ValueId| bytes_of(&values.values[*v].ty);
        match step {
            Step::Run { node, reads, writes } => {
                let node = &values.nodes[*node];
                let operands: Vec<ValueId> = node.operands().collect();
                let all = operands.iter().zip(reads).chain(node.results.iter().zip(writes));
                all.filter_map(|(v, p)| Some((v, p.as_ref()?))).for_each(|(v, p)| moves(p, bytes(v)));
            }
            Step::Move { value, from, to } => [from, to].into_iter().for_each(|p| moves(p, bytes(value))),
            Step::Free { .. } => {}
        }
    }
    for step in &placement.steps {
        let written = |v: ValueId| bytes_of(&values.values[v].ty);
        match step {
            Step::Run { node, reads, writes } => {
                out.steps += 1;
                let node = &values.nodes[*node];
                out.fused += fused_body(node).map_or(0, |body| program.graphs[body].order.len());
                for v in carried_over(node, reads, writes) {
                    out.copies += 1;
                    out.copy_bytes += written(v);
                }
                if only_moves(values, node) {
                    out.copies += 1;
                    out.copy_bytes += node.results.iter().map(|r| written(*r)).sum::<i64>();
                }
            }
            Step::Move { value, .. } => {
                out.steps += 1;
                out.copies += 1;
                out.copy_bytes += written(*value);
            }
            Step::Free { node } => {
                let node = &values.nodes[*node];
                if node.op.is_view() {
                    out.views += node.results.len();
                }
            }
        }
    }
    for (id, nested) in &placement.nested {
        count_steps(program, *id, &nested.placement, out);
    }
}

fn count_remarks(segment: &PreparedSegment, out: &mut PlacedCounts) {
    for r in &segment.remarks {
        if r.missed() {
            out.missed += 1;
            out.missed_bytes += r.bytes;
        } else if matches!(r.kind, RemarkKind::ReuseOperand | RemarkKind::ScatterInBase) {
            out.in_place += 1;
        }
    }
}
