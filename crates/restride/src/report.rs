//! What compiling found and decided, in numbers.

use crate::bound::UpperBound;
use crate::compile::{Compiled, Piece, Times};
use crate::instance::Instance;
use restride_exec::inputs::{Strides, bind};
use restride_exec::interp::Options;
use restride_exec::{Inputs, State};
use restride_ir::text::{PrintOptions, print_placed};
use restride_ir::{
    Buffer, BufferKind, Graph, Id, InputKind, Live, Movement, Node, OutputKind, Placement, Program, RemarkKind, Result,
    Step, Type, ValueId, carried_over, lives,
};
use std::sync::Arc;

/// Operators of a program, bodies of higher-order operators included.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Counts {
    /// Nodes.
    pub nodes: usize,
    /// Nodes that write an argument.
    pub mutations: usize,
    /// Nodes whose results are views of an argument.
    pub views: usize,
}

impl Counts {
    pub(crate) fn of(program: &Program) -> Counts {
        let mut out = Counts::default();
        for (_, graph) in program.graphs.iter() {
            for (_, node) in graph.ordered() {
                out.nodes += 1;
                out.mutations += usize::from(node.op.mutates(&node.args) || node.op.def().metadata);
                out.views += usize::from(node.op.is_view() && !node.op.def().metadata);
            }
        }
        out
    }
}

/// What placement did, bodies of higher-order operators included (each counted once).
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
    /// Declined candidates.
    pub missed: usize,
    /// Bytes that taking them would have saved.
    pub missed_bytes: i64,
}

/// Memory of a run, in bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct PlanCounts {
    /// Intermediates and working memory.
    pub arena_bytes: i64,
    /// Buffers and parameters that the program changes.
    pub state_bytes: i64,
    /// Outputs.
    pub output_bytes: i64,
    /// Largest sum of arena bytes that live at one step.
    pub lower_bound_bytes: i64,
    /// No arena is smaller than this: the lower bound, the largest buffer, or more where a search has been through all that
    /// is smaller.
    pub at_least_bytes: i64,
    /// Whether the arena is proved as small as it can be.
    pub optimal: bool,
    /// What no arena is larger than, whatever sizes inputs have; `None` where there is no such number, and in a plan of its own.
    pub upper_bound_bytes: Option<i64>,
}

/// What is stored in one of the memories that the arena consists of.
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

/// What compiling a program for certain inputs found and decided.
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
    /// What placement did.
    pub placed: PlacedCounts,
    /// Memory.
    pub plan: PlanCounts,
    /// The memories that the arena consists of, where some were named.
    pub memories: Memories,
    /// Why there is no bound of the arena over all sizes, where there is none.
    pub unbounded: Option<String>,
    /// Nodes from whose results sizes are learnt: what comes after one gets its memory when it has run.
    pub learns: Vec<String>,
    /// Nodes that run again for a budget, and the bytes that they make.
    pub again: (usize, i64),
    /// Whether the checkers ran; they found nothing then.
    pub checked: bool,
    /// What it took.
    pub times: Times,
}

/// One buffer of a memory plan.
#[derive(Clone, Debug)]
pub struct PlanRow {
    /// Which piece of a program that is cut where sizes are learnt from data.
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
    /// Values that lie in it, in the order in which they come.
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

impl Compiled {
    /// The pieces for these inputs. A program with sizes that depend on data is run for it, on copies.
    pub(crate) fn pieces(&self, inputs: &Inputs) -> Result<Vec<Arc<Piece>>> {
        if self.segments().len() == 1 {
            let bound = bind(self.functional(), inputs, &State::new(self.functional())?, Strides::AsDeclared)?;
            return Ok(vec![self.piece(0, &bound.symbols)?]);
        }
        let mut out = Vec::new();
        let mut instance = Instance::new(self.clone(), State::new(self.functional())?);
        instance.run_pieces(&inputs.deep_clone(), &Options::default(), &mut |p| out.push(p))?;
        Ok(out)
    }

    /// What compiling for these inputs found and decided.
    ///
    /// # Errors
    /// As [`Instance::run`].
    pub fn report(&self, inputs: &Inputs) -> Result<Report> {
        Ok(self.report_of(&self.pieces(inputs)?))
    }

    pub(crate) fn report_of(&self, pieces: &[Arc<Piece>]) -> Report {
        let functional = self.functional();
        let mut times = Times { functionalize: self.functionalize_time(), ..Times::default() };
        for p in pieces {
            times.simplify += p.times.simplify;
            times.place += p.times.place;
            times.check += p.times.check;
            times.plan += p.times.plan;
        }
        let mut placed = PlacedCounts::default();
        for p in pieces {
            count_steps(&p.program, p.program.main, &p.placement, &mut placed);
            count_remarks(p, &mut placed);
        }
        let bound = self.upper_bound();
        let unbounded = match bound {
            UpperBound::Bytes(_) => None,
            UpperBound::Unknown(why) => Some(why.clone()),
        };
        let again = pieces.iter().flat_map(|p| &p.remarks).filter(|r| r.kind == RemarkKind::ComputeAgain);
        let again = again.fold((0, 0i64), |(n, bytes), r| (n + 1, bytes.saturating_add(r.bytes)));
        let mutated = functional.signature.outputs.iter().filter(|o| matches!(o.kind, OutputKind::Mutation(_))).count();
        Report {
            program: functional.name.to_string(),
            imported: self.imported(),
            functional_nodes: Counts::of(functional).nodes,
            mutated,
            placed,
            plan: PlanCounts { upper_bound_bytes: bound.bytes(), ..totals(pieces) },
            memories: memories(pieces),
            unbounded,
            learns: self.learns(),
            again,
            checked: self.checks(),
            times,
        }
    }

    /// The program as placed for these inputs, as text.
    ///
    /// # Errors
    /// As [`Instance::run`].
    pub fn show_placed(&self, inputs: &Inputs) -> Result<String> {
        let text = |p: &Arc<Piece>| print_placed(&p.program, &p.placement, Some(&p.plan), &PrintOptions::default());
        Ok(self.pieces(inputs)?.iter().map(text).collect::<Vec<_>>().join("\n"))
    }

    /// The memory plan for these inputs.
    ///
    /// # Errors
    /// As [`Instance::run`].
    pub fn plan_table(&self, inputs: &Inputs) -> Result<PlanTable> {
        let pieces = self.pieces(inputs)?;
        let rows = pieces.iter().enumerate().flat_map(|(i, p)| plan_rows(i, p)).collect();
        Ok(PlanTable { totals: totals(&pieces), memories: memories(&pieces), rows })
    }
}

/// First and last step that touches each buffer.
pub(crate) fn spans(placement: &Placement) -> Vec<Option<(usize, usize)>> {
    let mut spans: Vec<Option<(usize, usize)>> = vec![None; placement.buffers.len()];
    for (at, step) in placement.steps.iter().enumerate() {
        for buffer in placement.touched(step) {
            spans[buffer.index()].get_or_insert((at, at)).1 = at;
        }
    }
    spans
}

fn plan_rows(segment: usize, piece: &Piece) -> Vec<PlanRow> {
    let placement = &piece.placement;
    let graph = piece.program.graph();
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
        values[buffer.index()].push(format!("working memory of {result}"));
    }
    let mut rows = Vec::new();
    for (id, buffer) in placement.buffers.iter() {
        let (Some(offset), Some(steps)) = (piece.plan.offsets[id], spans[id.index()]) else { continue };
        let (values, lives) = (std::mem::take(&mut values[id.index()]), std::mem::take(lives.entry(id)));
        let space = piece.plan.memory_at(offset);
        let offset = offset - space.map_or(0, |m| m.start);
        let memory = space.map(|m| m.name.clone());
        rows.push(PlanRow { segment, offset, memory, bytes: buffer.bytes, steps, lives, values });
    }
    let rank = |r: &PlanRow| piece.plan.memories.iter().position(|m| Some(&m.name) == r.memory.as_ref());
    rows.sort_by_key(|r| (rank(r), r.offset, r.steps));
    rows
}

/// The memories that serve all pieces: the most bytes of each, and the traffic of a run.
fn memories(pieces: &[Arc<Piece>]) -> Memories {
    let mut out = Memories::default();
    for p in pieces {
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

fn totals(pieces: &[Arc<Piece>]) -> PlanCounts {
    let mut out = PlanCounts::default();
    for p in pieces {
        out.arena_bytes = out.arena_bytes.max(p.plan.arena_bytes);
        out.lower_bound_bytes = out.lower_bound_bytes.max(p.plan.lower_bound_bytes);
        out.at_least_bytes = out.at_least_bytes.max(p.plan.at_least_bytes);
        for (_, buffer) in p.placement.buffers.iter() {
            if let Buffer { kind: BufferKind::Output(_), bytes } = buffer {
                out.output_bytes += bytes;
            }
        }
    }
    // One arena serves all pieces.
    out.optimal = out.arena_bytes == out.at_least_bytes;
    // The last piece has the whole signature; an earlier one may write some of it already.
    let Some(last) = pieces.last() else { return out };
    for spec in &last.program.signature.outputs {
        let OutputKind::Mutation(i) = spec.kind else { continue };
        let input = &last.program.signature.inputs[i];
        if matches!(input.kind, InputKind::Parameter(_) | InputKind::Buffer { .. } | InputKind::Constant(_)) {
            out.state_bytes += bytes_of(&last.program.graph().values[input.value].ty);
        }
    }
    out
}

pub(crate) fn bytes_of(ty: &Type) -> i64 {
    ty.tensor().and_then(|t| t.known()).map_or(0, |m| m.layout.numel() * m.dtype.size() as i64)
}

/// Whether a node only moves elements: views, scatters, `cat` and their like, when they are run. What converts computes,
/// and so does what may give its operand back and draws numbers otherwise (`dropout`).
pub(crate) fn only_moves(graph: &Graph, node: &Node) -> bool {
    let def = node.op.def();
    if def.random || def.movement.is_none() && def.view.is_none() {
        return false;
    }
    let dtype = |v: ValueId| graph.values[v].ty.tensor().map(|t| t.dtype);
    let bits = matches!(def.movement, Some(Movement::View(_)));
    bits || node.operands().all(|v| node.results.iter().all(|r| dtype(v).is_none() || dtype(*r) == dtype(v)))
}

fn count_steps(program: &Program, graph: restride_ir::GraphId, placement: &Placement, out: &mut PlacedCounts) {
    let values = &program.graphs[graph];
    for step in &placement.steps {
        let written = |v: ValueId| bytes_of(&values.values[v].ty);
        match step {
            Step::Run { node, reads, writes } => {
                out.steps += 1;
                let node = &values.nodes[*node];
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

fn count_remarks(piece: &Piece, out: &mut PlacedCounts) {
    for r in &piece.remarks {
        if r.missed() {
            out.missed += 1;
            out.missed_bytes += r.bytes;
        } else if matches!(r.kind, RemarkKind::ReuseOperand | RemarkKind::ScatterInBase) {
            out.in_place += 1;
        }
    }
}
