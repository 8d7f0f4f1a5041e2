//! Placement: where every value of a functional program lives, and what runs.
//!
//! Nodes are visited in order. A result goes, by preference, where a later node wants it (an input that it is the new
//! content of, an output, a region of a scatter's base, a part of a `cat`), onto an operand that dies (a view on its base, a
//! scatter in its base, a pointwise result on an operand), or into a buffer of its own. Each is taken unless a
//! value that is still needed would lose a cell, decided by exact overlap of regions; what is declined is a remark.
//! Sizes are known here: symbolic programs are placed once per binding.

mod assemble;
mod choose;
mod finish;
mod homes;
mod layouts;
mod memory;
mod moved;
mod revise;
mod views;

use crate::plan::{PlanOptions, plan};
use homes::successors;
use memory::{Memory, dense};
use restride_ir::{
    Arg, Buffer, BufferKind, Error, Graph, GraphId, HopCall, InputKind, Layout, LoopFrame, Meta, Nested, NodeId,
    OutputKind, Place, Placement, Program, Remark, RemarkKind, Result, Step, Table, Type, ValueId, aligned,
    border_layout, known_meta, layout_bytes, scratch_bytes,
};
pub use revise::Avoid;
use revise::{Attempt, best};
use std::collections::{BTreeMap, BTreeSet};
pub(crate) use views::view_rule;

/// Which kinds of sharing may be taken. All, by default; tests and measurements switch them off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlaceOptions {
    /// Views on their bases; copies that change nothing.
    pub views: bool,
    /// Results on dying operands.
    pub reuse: bool,
    /// Scatters in their bases.
    pub scatter: bool,
    /// Sources straight in the region of a scatter or the part of a `cat`.
    pub straight: bool,
    /// New contents of inputs straight in the inputs' memory, outputs straight in the caller's.
    pub boundary: bool,
    /// User inputs are moved into the arena before the first node, as by ExecuTorch's `alloc_graph_input`: their memory there
    /// is used again after their last use.
    pub inputs_in_arena: bool,
    /// Outputs are computed in the arena and moved to the caller at the end, as by ExecuTorch's `alloc_graph_output`.
    pub outputs_in_arena: bool,
    /// Layouts that spare kernels from putting what they read in order.
    pub layouts: bool,
    /// Choices that stood in the way of better ones undone.
    pub revise: bool,
    /// Declines one candidate in four, drawn from this seed: placements that differ and are as right, for tests.
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
            revise: true,
            vary: None,
        }
    }
}

/// A placement with the decisions that led to it.
#[derive(Clone, Debug, Default)]
pub struct Placed {
    /// The answer.
    pub placement: Placement,
    /// Decisions taken and declined, in program order.
    pub remarks: Vec<Remark>,
}

/// Places a functional program whose sizes are all known and whose operators all have kernels, views or movements.
///
/// # Errors
/// A size that is not known, or an operator that must be lowered first, with the node. Too many nested bodies.
pub fn place(program: &Program, options: &PlaceOptions) -> Result<Placed> {
    program.limits.check_bodies(program)?;
    best(program, |avoid| attempt(program, options, avoid))
}

/// Places a program once, with memory of their own for the values in `avoid`, and undoes nothing: one of the placements that
/// [`place`] could have found, for measurements of what it chooses.
///
/// # Errors
/// As [`place`].
pub fn place_avoiding(program: &Program, options: &PlaceOptions, avoid: &Avoid) -> Result<Placed> {
    Ok(attempt(program, options, avoid)?.placed)
}

fn attempt(program: &Program, options: &PlaceOptions, avoid: &Avoid) -> Result<Attempt> {
    let mut nested = BTreeMap::new();
    let boundary = Boundary::of_main(program);
    let mut placer = Placer::new(program, program.main, boundary, *options, avoid)?;
    placer.run(&mut nested)?;
    let regrets = if options.revise { placer.regrets } else { Avoid::new() };
    let mut placed = Placed { placement: placer.memory.placement, remarks: placer.remarks };
    placed.placement.nested = nested;
    Ok(Attempt { placed, regrets })
}

/// What a placement costs: bytes that are moved, then bytes of buffers. The less of two is the better placement.
pub fn cost(program: &Program, placement: &Placement) -> (i64, i64) {
    revise::cost(program, program.main, placement)
}

/// What a graph's inputs and outputs are to its caller.
struct Boundary {
    /// For each input, the value that its memory must hold at the end, if it may be written.
    becomes: Vec<Option<ValueId>>,
    /// Outputs that get memory of their own: position and value.
    outputs: Vec<(usize, ValueId)>,
    /// Whether values lie at the border from cell 0 (a body) or as their types say (the main graph).
    body: bool,
}

impl Boundary {
    fn of_main(program: &Program) -> Boundary {
        let graph = program.graph();
        let mut becomes = vec![None; graph.inputs.len()];
        let mut outputs = Vec::new();
        for (i, (arg, spec)) in graph.outputs.iter().zip(&program.signature.outputs).enumerate() {
            let Arg::Value(v) = arg else { continue };
            if !matches!(graph.values[*v].ty, Type::Tensor(_)) {
                continue;
            }
            match spec.kind {
                OutputKind::Mutation(input) => becomes[input] = Some(*v),
                OutputKind::Metadata(_) | OutputKind::Token => {}
                _ if spec.alias.is_some() => {}
                _ => outputs.push((i, *v)),
            }
        }
        Boundary { becomes, outputs, body: false }
    }

    /// Of a body whose first inputs are what a loop carries.
    fn of_body(graph: &Graph, carried: usize) -> Boundary {
        let tensor = |v: &ValueId| matches!(graph.values[*v].ty, Type::Tensor(_));
        let outputs = graph
            .outputs
            .iter()
            .enumerate()
            .skip(carried)
            .filter_map(|(i, a)| if let Arg::Value(v) = a { Some((i, *v)) } else { None })
            .filter(|(_, v)| tensor(v))
            .collect();
        Boundary { becomes: Nested::becomes(graph, carried), outputs, body: true }
    }
}

/// One graph being placed.
struct Placer<'a> {
    program: &'a Program,
    id: GraphId,
    graph: &'a Graph,
    options: PlaceOptions,
    boundary: Boundary,
    memory: Memory,
    /// Types with known sizes, of tensors.
    types: Table<ValueId, Option<Meta>>,
    /// Position of the last node that reads a value; past the last node for what the caller gets.
    last_use: Table<ValueId, usize>,
    /// Position of the node that makes a value.
    makers: Table<ValueId, Option<usize>>,
    /// Positions of the nodes that read a value, in order.
    uses: Table<ValueId, Vec<usize>>,
    /// What the caller gets of a value: positions of outputs, inputs that it becomes.
    wanted: BTreeMap<ValueId, Wanted>,
    remarks: Vec<Remark>,
    /// Memory of each input, as it lies at the start.
    input_places: Vec<Option<Place>>,
    /// For what is put together in place: the part that each operand is, `None` for those there twice.
    parts: BTreeMap<NodeId, BTreeMap<ValueId, Option<Layout>>>,
    /// Where values will be that are put together part by part and are not made yet, with those that they may replace.
    ahead: BTreeMap<ValueId, (Place, Vec<ValueId>)>,
    /// For each value the last of those that can follow it in its cells.
    ends: Table<ValueId, Option<ValueId>>,
    /// Of what it has been said why it is not made where it is wanted.
    declined: BTreeSet<(ValueId, RemarkKind)>,
    /// Views that have been put on their bases as soon as these were placed.
    early: BTreeSet<NodeId>,
    /// Memory of each output that has been given one.
    output_places: BTreeMap<usize, Place>,
    /// Values that are to have memory of their own.
    avoid: &'a Avoid,
    /// What each choice of a place saves, for values that did not get memory of their own.
    chosen: Table<ValueId, Option<i64>>,
    /// The value whose place a view or what was made in place is on.
    owner: Table<ValueId, Option<ValueId>>,
    /// Values that kept the last place asked for from being written.
    in_the_way: Vec<ValueId>,
    /// Of what was made where it is wanted: values whose cells there are gone, and replaced before anybody reads them.
    replaced: BTreeMap<ValueId, Vec<ValueId>>,
    /// Values whose places stood in the way of something better.
    regrets: Avoid,
}

/// Where a value must be at the end.
#[derive(Clone, Debug, Default)]
struct Wanted {
    inputs: Vec<usize>,
    outputs: Vec<usize>,
}

impl<'a> Placer<'a> {
    fn new(
        program: &'a Program,
        id: GraphId,
        boundary: Boundary,
        options: PlaceOptions,
        avoid: &'a Avoid,
    ) -> Result<Self> {
        let graph = &program.graphs[id];
        let mut types = Table::new();
        for (v, value) in graph.values.iter() {
            if let Type::Tensor(t) = &value.ty {
                types.set(v, t.known());
            }
        }
        let end = graph.order.len();
        let mut last_use: Table<ValueId, usize> = Table::new();
        let mut uses: Table<ValueId, Vec<usize>> = Table::new();
        let mut makers: Table<ValueId, Option<usize>> = Table::new();
        for (at, (_, node)) in graph.ordered().enumerate() {
            node.results.iter().for_each(|r| makers.set(*r, Some(at)));
            for v in node.operands() {
                last_use.set(v, at);
                let u = uses.entry(v);
                if u.last() != Some(&at) {
                    u.push(at);
                }
            }
        }
        let mut wanted: BTreeMap<ValueId, Wanted> = BTreeMap::new();
        for (i, v) in boundary.becomes.iter().enumerate() {
            if let Some(v) = v {
                wanted.entry(*v).or_default().inputs.push(i);
                last_use.set(*v, end);
            }
        }
        for (i, v) in &boundary.outputs {
            wanted.entry(*v).or_default().outputs.push(*i);
            last_use.set(*v, end);
        }
        let memory = Memory::default();
        let remarks = Vec::new();
        let ends = successors(graph, &types, &last_use);
        Ok(Placer {
            program,
            id,
            graph,
            options,
            boundary,
            memory,
            types,
            last_use,
            makers,
            uses,
            wanted,
            remarks,
            input_places: vec![None; graph.inputs.len()],
            parts: BTreeMap::new(),
            ahead: BTreeMap::new(),
            ends,
            declined: BTreeSet::new(),
            early: BTreeSet::new(),
            output_places: BTreeMap::new(),
            avoid,
            chosen: Table::new(),
            owner: Table::new(),
            in_the_way: Vec::new(),
            replaced: BTreeMap::new(),
            regrets: Avoid::new(),
        })
    }

    fn ty(&self, v: ValueId) -> Result<&Meta> {
        self.types[v].as_ref().ok_or_else(|| {
            Error::unsupported(format!("the sizes of %{} are not known before the run", self.graph.values[v].name))
        })
    }

    fn run(&mut self, nested: &mut BTreeMap<GraphId, Nested>) -> Result<()> {
        self.inputs()?;
        let graph = self.graph;
        for (at, &id) in graph.order.iter().enumerate() {
            self.node(at, id, nested).map_err(|e| e.at(graph, id))?;
        }
        self.finish()
    }

    /// Every tensor input has the memory that the caller gives.
    fn inputs(&mut self) -> Result<()> {
        let graph = self.graph;
        for (i, &v) in graph.inputs.iter().enumerate() {
            if self.types[v].is_none() && !matches!(graph.values[v].ty, Type::Tensor(_)) {
                continue;
            }
            let opaque = !self.boundary.body && matches!(self.program.signature.inputs[i].kind, InputKind::Opaque(_));
            if opaque {
                continue;
            }
            let ty = self.ty(v)?.clone();
            let layout = if self.boundary.body { border_layout(&ty) } else { ty.layout.clone() };
            let bytes = layout_bytes(&layout, ty.dtype.size());
            let buffer = self.memory.add(Buffer { kind: BufferKind::Input(i), bytes });
            let place = Place { buffer, layout };
            self.input_places[i] = Some(place.clone());
            let read = !self.uses[v].is_empty() || self.wanted.contains_key(&v);
            let user = !self.boundary.body && matches!(self.program.signature.inputs[i].kind, InputKind::User(_));
            let inside = self.options.inputs_in_arena && user && read;
            let place = if inside { self.brought_in(v, place, &ty) } else { place };
            self.settle(v, place, ty.dtype)?;
            self.memory.writable(buffer, self.boundary.becomes[i].is_some());
        }
        Ok(())
    }

    /// Moves an input's elements into the arena.
    fn brought_in(&mut self, v: ValueId, from: Place, ty: &Meta) -> Place {
        let to = self.memory.fresh_as(dense(ty), ty.dtype);
        self.memory.placement.steps.push(Step::Move { value: v, from: from.into(), to: to.clone().into() });
        to
    }

    fn node(&mut self, at: usize, id: NodeId, nested: &mut BTreeMap<GraphId, Nested>) -> Result<()> {
        let node = &self.graph.nodes[id];
        if node.op.def().hop.is_some() {
            return self.higher_order(at, id, nested);
        }
        if node.results.iter().all(|r| !matches!(self.graph.values[*r].ty, Type::Tensor(_))) {
            // Numbers and assertions: they run, and take no memory.
            let writes = vec![None; node.results.len()];
            self.run_step(id, writes);
            return Ok(());
        }
        if self.free_view(id)? || self.moved(at, id)? {
            return Ok(());
        }
        self.kernel(at, id)
    }

    /// Where a node's operands are.
    fn reads(&self, id: NodeId) -> Vec<Option<Place>> {
        self.graph.nodes[id].operands().map(|v| self.memory.place(v).cloned()).collect()
    }

    /// A step that runs a node, writing at the given places.
    fn run_step(&mut self, id: NodeId, writes: Vec<Option<Place>>) {
        let reads = self.reads(id);
        let bytes = scratch_bytes(self.graph, id, &reads, &writes);
        if bytes > 0 {
            let buffer = self.memory.add(Buffer { kind: BufferKind::Arena, bytes });
            self.memory.placement.scratch.insert(id, buffer);
        }
        self.memory.placement.steps.push(Step::Run { node: id, reads, writes });
    }

    /// A higher-order node: its bodies are placed by themselves; what a loop carries is updated in the memory of the
    /// operand where that dies.
    fn higher_order(&mut self, at: usize, id: NodeId, nested: &mut BTreeMap<GraphId, Nested>) -> Result<()> {
        let node = &self.graph.nodes[id];
        let call = HopCall::of(self.graph, node)?.ok_or_else(|| Error::invalid("not a higher-order operator"))?;
        for (b, &body) in call.bodies.iter().enumerate() {
            let carried = call.replaced(b);
            if let Some(placed) = nested.get(&body) {
                if placed.carried != carried {
                    let what =
                        format!("the graph {} is a loop's body, and another call's", self.program.graphs[body].name);
                    return Err(Error::unsupported(what).help("give each call a graph of its own"));
                }
                continue;
            }
            let boundary = Boundary::of_body(&self.program.graphs[body], carried);
            let mut placer = Placer::new(self.program, body, boundary, self.options, self.avoid)?;
            let mut inner = BTreeMap::new();
            placer.run(&mut inner)?;
            self.remarks.append(&mut placer.remarks);
            self.regrets.append(&mut placer.regrets);
            let mut placement = placer.memory.placement;
            placement.nested = inner;
            let plan = plan(&self.program.graphs[body], &placement, &PlanOptions::default());
            nested.insert(body, Nested { placement, plan, carried });
        }
        let mut writes = Vec::new();
        for (k, &r) in node.results.iter().enumerate() {
            let place = match &self.types[r] {
                Some(ty) => {
                    let ty = ty.clone();
                    let place = match call.takes_over(k) {
                        Some(_) => self.result(at, id, k, r, &[])?,
                        None => self.home(at, id, r)?,
                    };
                    self.settle(r, place.clone(), ty.dtype)?;
                    Some(place)
                }
                None if matches!(self.graph.values[r].ty, Type::Tensor(_)) => return Err(self.ty(r).unwrap_err()),
                None => None,
            };
            writes.push(place);
        }
        let reads = self.reads(id);
        let frame = LoopFrame::of(&self.program.graphs, self.id, id, &reads, &writes, nested)?;
        if frame.bytes > 0 {
            let buffer = self.memory.add(Buffer { kind: BufferKind::Arena, bytes: aligned(frame.bytes) });
            self.memory.placement.scratch.insert(id, buffer);
        }
        self.memory.placement.steps.push(Step::Run { node: id, reads, writes });
        Ok(())
    }

    /// Type of a value for a rule that reads it where it is placed.
    fn placed_meta(&self, v: ValueId) -> Result<Meta> {
        let ty = self.ty(v)?;
        Ok(match self.memory.place(v) {
            Some(p) => Meta { dtype: ty.dtype, layout: p.layout.clone() },
            None => known_meta(self.graph, v)?,
        })
    }
}
