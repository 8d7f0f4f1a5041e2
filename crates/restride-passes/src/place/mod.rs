//! Placement: the byte regions of buffers that hold each value, and the steps that run.
//!
//! [`place`] has these stages:
//!
//! 1. `facts`: types, readers, makers and the caller's demands of each graph, computed once.
//! 2. `place_inputs` (`boundary`): each input is stored in the memory that the caller gives.
//! 3. `place_node`, for each node in order. The first of these that applies places its results:
//!    `place_call` (`bodies`) for higher-order operators, `place_numbers`, `place_view` (`views`), `place_movement`
//!    (`movement`, `assemble`) for operators that only move data, `place_kernel` (`kernels`) for all others.
//! 4. `move_outputs` (`boundary`): outputs move to the caller's memory, unless they are stored in it.
//! 5. `revise`: stages 2 to 4 again without the choices that stood in the way of better ones; the best attempt counts.
//!
//! A result is stored, by preference, at a place that `hints` names (the input whose new content it is, an output, a region of a
//! scatter's base, a part of a `cat`), on an operand that dies, or in a buffer of its own with the layout that `layouts`
//! chooses for its readers. A place is taken unless a value that is still read would lose a cell, which `overwrite` decides
//! by exact overlap of regions on the `places` so far. Every candidate that is declined is a remark.
//!
//! Sizes are known here: a program with symbolic sizes is placed once per binding.

mod assemble;
mod bodies;
mod boundary;
mod facts;
mod hints;
mod kernels;
mod layout_times;
mod layouts;
mod movement;
mod overwrite;
mod places;
mod revise;
mod views;

use crate::args::known_or_refused;
pub(crate) use facts::ends;
use facts::{GraphFacts, ProgramFacts};
pub(crate) use hints::AssembleFn;
use hints::Hints;
use places::Places;
use restride_ir::{
    Arg, GraphId, Layout, Meta, Nested, NodeId, Place, Placement, Program, Reason, Remark, RemarkKind, Result, Scalar,
    Step, ValueId, known_meta, scratch_bytes,
};
pub use revise::Avoid;
use revise::{PlacementAttempt, Revision, best};
use std::collections::{BTreeMap, BTreeSet};
pub(crate) use views::view_rule;

/// The kinds of sharing that placement may choose: all by default. Tests and measurements switch some off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlaceOptions {
    /// Views share the memory of their bases, and so do copies that change nothing.
    pub views: bool,
    /// Results take over the memory of operands that die.
    pub reuse: bool,
    /// Scatters write into their bases.
    pub scatter: bool,
    /// Sources of a scatter and parts of a `cat` are computed in their regions.
    pub straight: bool,
    /// New contents of inputs are computed in the inputs' memory, and outputs in the caller's.
    pub boundary: bool,
    /// User inputs are moved into the arena before the first node, as by ExecuTorch's `alloc_graph_input`. After their last use
    /// that memory is free.
    pub inputs_in_arena: bool,
    /// Outputs are computed in the arena and moved to the caller at the end, as by ExecuTorch's `alloc_graph_output`.
    pub outputs_in_arena: bool,
    /// Buffers get the layouts with which kernels need the least scratch.
    pub layouts: bool,
    /// Images get the layouts in which kernels are fastest.
    pub by_time: bool,
    /// The program is placed again without choices that stood in the way of better ones.
    pub revise: bool,
    /// Declines one candidate in four, drawn from this seed: other placements that are as correct, for tests.
    pub vary: Option<u64>,
}

impl Default for PlaceOptions {
    fn default() -> Self {
        PlaceOptions {
            views: true,
            reuse: true,
            scatter: true,
            straight: true,
            boundary: true,
            inputs_in_arena: false,
            outputs_in_arena: false,
            layouts: true,
            by_time: true,
            revise: true,
            vary: None,
        }
    }
}

/// A placement with the decisions that led to it.
#[derive(Clone, Debug, Default)]
pub struct Placed {
    /// Places, buffers and steps.
    pub placement: Placement,
    /// Decisions taken and declined, in program order.
    pub remarks: Vec<Remark>,
    /// Whether the layouts of some values are those in which kernels are fastest.
    pub by_time: bool,
}

/// Places a functional program whose sizes are known and whose operators all have kernels, views or movements.
///
/// # Errors
/// A size is a symbol, an operator must be lowered first, or bodies are nested too deeply; with the node.
pub fn place(program: &Program, options: &PlaceOptions) -> Result<Placed> {
    program.limits.check_bodies(program)?;
    let facts = GraphFacts::of_program(program, options.by_time);
    best(program, |avoid| attempt(program, &facts, options, avoid))
}

/// Places a program in one attempt, with memory of their own for the values in `avoid`: one of the placements that [`place`]
/// chooses from, for measurements of its choice.
///
/// # Errors
/// Those of [`place`].
pub fn place_avoiding(program: &Program, options: &PlaceOptions, avoid: &Avoid) -> Result<Placed> {
    Ok(attempt(program, &GraphFacts::of_program(program, options.by_time), options, avoid)?.placed)
}

/// Places the main graph once, with the bodies below it.
fn attempt(
    program: &Program,
    facts: &ProgramFacts<'_>,
    options: &PlaceOptions,
    avoid: &Avoid,
) -> Result<PlacementAttempt> {
    let mut nested = BTreeMap::new();
    let revision = Revision::new(program.main, avoid, program.graph().values.len());
    let placer = Placer::new(facts, &facts[&(program.main, 0)], revision, options).run(&mut nested)?;
    let regrets = if options.revise { placer.revision.regrets } else { Avoid::new() };
    let placement = Placement { nested, ..placer.places.placement };
    let by_time = facts.values().any(GraphFacts::has_layouts);
    Ok(PlacementAttempt { placed: Placed { placement, remarks: placer.decisions.remarks, by_time }, regrets })
}

/// Cost of a placement: bytes that are moved, then bytes of buffers. The smaller pair is the better placement.
pub fn cost(program: &Program, placement: &Placement) -> (i64, i64) {
    revise::cost(program, program.main, placement)
}

/// One graph being placed.
struct Placer<'a> {
    /// Of every graph of the program.
    all: &'a ProgramFacts<'a>,
    facts: &'a GraphFacts<'a>,
    options: PlaceOptions,
    hints: Hints,
    places: Places,
    revision: Revision<'a>,
    /// For each wait, the places of the exchange's operands at its start.
    holds: BTreeMap<NodeId, Vec<Option<Place>>>,
    decisions: Decisions,
}

/// Remarks so far.
#[derive(Default)]
struct Decisions {
    remarks: Vec<Remark>,
    /// Values for which a remark says already why they are not made at a hinted place.
    declined: BTreeSet<(ValueId, RemarkKind)>,
}

impl<'a> Placer<'a> {
    fn new(
        all: &'a ProgramFacts<'a>,
        facts: &'a GraphFacts<'a>,
        revision: Revision<'a>,
        options: &PlaceOptions,
    ) -> Placer<'a> {
        Placer {
            all,
            facts,
            options: *options,
            hints: Hints::default(),
            places: Places::new(facts),
            revision,
            holds: BTreeMap::new(),
            decisions: Decisions { remarks: Vec::with_capacity(facts.graph.order.len()), ..Decisions::default() },
        }
    }

    /// The stages for one graph: its inputs, its nodes in order, its outputs.
    fn run(mut self, nested: &mut BTreeMap<GraphId, Nested>) -> Result<Placer<'a>> {
        let graph = self.facts.graph;
        self.place_inputs()?;
        for (at, &id) in graph.order.iter().enumerate() {
            self.place_node(at, id, nested).map_err(|e| e.at(graph, id))?;
        }
        self.move_outputs()?;
        Ok(self)
    }

    /// The stages for one node: the first that applies places its results.
    fn place_node(&mut self, at: usize, id: NodeId, nested: &mut BTreeMap<GraphId, Nested>) -> Result<()> {
        let placed = self.place_call(at, id, nested)?
            || self.place_numbers(id)
            || self.place_view(id)?
            || self.place_movement(at, id)?;
        if !placed {
            self.place_kernel(at, id)?;
        }
        self.remark_layouts(id);
        Ok(())
    }

    /// Remarks on results in the layouts that were chosen by time.
    fn remark_layouts(&mut self, id: NodeId) {
        let facts = self.facts;
        for &r in &facts.graph.nodes[id].results {
            if let (Some(chosen), Some(place)) = (&facts.layouts[r], self.places.find(r))
                && (&place.layout.sizes, &place.layout.strides) == (&chosen.sizes, &chosen.strides)
            {
                let reason = Reason::Faster { nanoseconds: facts.layout_gains[r] };
                self.remark(id, RemarkKind::LaidOutByTime, reason, 0, None);
            }
        }
    }

    /// A node without tensor results: numbers and assertions run and take no memory.
    fn place_numbers(&mut self, id: NodeId) -> bool {
        let results = &self.facts.graph.nodes[id].results;
        let numbers = results.iter().all(|r| !self.facts.is_tensor(*r));
        if numbers {
            self.push_run(id, vec![None; results.len()]);
        }
        numbers
    }

    /// Places of a node's operands.
    fn reads(&self, id: NodeId) -> Vec<Option<Place>> {
        let node = &self.facts.graph.nodes[id];
        // The step keeps the list, which is not to be longer than it must.
        let mut reads = Vec::with_capacity(node.operands().count());
        reads.extend(node.operands().map(|v| self.places.find(v).cloned()));
        reads
    }

    /// Adds a step that runs a node's kernel and writes at the given places.
    fn push_run(&mut self, id: NodeId, writes: Vec<Option<Place>>) {
        let reads = self.reads(id);
        self.places.add_scratch(id, scratch_bytes(&self.facts.program.graphs, self.facts.graph, id, &reads, &writes));
        self.places.placement.steps.push(Step::Run { node: id, reads, writes });
    }

    /// A node's arguments for a rule, with the types that `meta` gives its operands.
    fn args(&self, id: NodeId, meta: impl Fn(ValueId) -> Result<Meta>) -> Result<Vec<Arg<Meta, Scalar>>> {
        known_or_refused(&self.facts.graph.nodes[id], meta)
    }

    /// A node's arguments with the layouts of eager PyTorch.
    fn eager_args(&self, id: NodeId) -> Result<Vec<Arg<Meta, Scalar>>> {
        self.args(id, |v| self.facts.ty(v).cloned())
    }

    /// A node's arguments with the layouts of eager PyTorch, but for one operand's.
    fn args_with(&self, id: NodeId, operand: ValueId, layout: &Layout) -> Result<Vec<Arg<Meta, Scalar>>> {
        let own = Meta { dtype: self.facts.ty(operand)?.dtype, layout: layout.clone() };
        self.args(id, |v| if v == operand { Ok(own.clone()) } else { self.facts.ty(v).cloned() })
    }

    /// The type of a value with the layout of its place.
    fn placed_meta(&self, v: ValueId) -> Result<Meta> {
        let ty = self.facts.ty(v)?;
        Ok(match self.places.find(v) {
            Some(p) => Meta { dtype: ty.dtype, layout: p.layout.clone() },
            None => known_meta(self.facts.graph, v)?,
        })
    }

    /// The next node that reads a value after position `at`; `None` for the caller.
    fn reader(&self, v: ValueId, at: usize) -> Option<NodeId> {
        self.places.next_use(v, at + 1).map(|u| self.facts.graph.order[u])
    }

    fn remark(&mut self, node: NodeId, kind: RemarkKind, reason: Reason, bytes: i64, over: Option<ValueId>) {
        // Parts and sources that are at their places are remarks of the whole and of the base.
        if matches!(kind, RemarkKind::AssembleInPlace | RemarkKind::SourceInRegion) && reason != Reason::Taken {
            let results = &self.facts.graph.nodes[node].results;
            self.decisions.declined.extend(results.iter().map(|r| (*r, kind)));
        }
        self.decisions.remarks.push(Remark { graph: self.facts.id, node, kind, reason, bytes, over });
    }

    /// Remarks that a value has to be moved to a hinted place, unless a remark says already why it was made elsewhere.
    fn remark_moved(&mut self, id: NodeId, v: ValueId, kind: RemarkKind) {
        if !self.decisions.declined.contains(&(v, kind)) {
            let input = self.facts.makers[v].is_none();
            let reason = if input { Reason::IsInput } else { Reason::MadeElsewhere };
            self.remark(id, kind, reason, self.facts.bytes_of(v), Some(v));
        }
    }

    /// Declines one choice in four where [`PlaceOptions::vary`] asks for variety.
    fn skips(&mut self, at: usize) -> bool {
        let Some(state) = &mut self.options.vary else { return false };
        *state = (*state ^ at as u64).wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (*state >> 33) % 4 == 0
    }
}
