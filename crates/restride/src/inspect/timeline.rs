//! The steps of a run and the memory that they use: the data of the report page.

use super::explain::{Explanation, Site};
use super::report::Report;
use super::{Prepared, bytes_of, graph_name, memory_name, only_moves, site, spans};
use crate::prepare::PreparedSegment;
use restride_ir::{
    BufferKind, CollectTree, Graph, GraphId, Id, InputKind, Live, NodeId, Place, Placement, Plan, Program, Remark,
    RemarkKind, Step, ValueId, aligned, lives,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The steps of a compiled program and the memory that they use.
///
/// ```
/// use restride::{CompileOptions, Compiled, Inputs, OpenOptions};
/// # fn main() -> restride::Result<()> {
/// # let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/examples/vit_small.pt2");
/// let program = restride::open(&path, &OpenOptions::default())?;
/// let inputs = Inputs::from_samples(&program).expect("the file has sample inputs")?;
/// let compiled = Compiled::new(program, Some(&inputs), &CompileOptions::default())?;
/// let timeline = compiled.prepare(&inputs)?.timeline();
/// let main = &timeline.parts[0];
/// let peak = main.peak().expect("it has intermediates");
/// for b in main.living(peak) {
///     let buffer = &main.buffers[b];
///     println!("{} bytes at {:?}: {:?}", buffer.bytes, buffer.offset, buffer.values.first().map(|v| &main.values[*v].name));
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Timeline {
    /// Name of the program.
    pub program: String,
    /// Bytes of the storages of all weights that the program is given.
    pub weight_bytes: i64,
    /// Bytes of all inputs that the user gives.
    pub input_bytes: i64,
    /// The program's pieces in the order in which they run, each followed by the bodies that its steps call.
    pub parts: Vec<TimelinePart>,
}

/// The data of a report page.
#[derive(Clone, Debug)]
pub struct Overview {
    /// Counts, bytes and times.
    pub report: Report,
    /// Its steps and their memory.
    pub timeline: Timeline,
    /// Why values lie where they do.
    pub explanation: Explanation,
}

/// Steps with an arena of their own: a piece of a program, or a body of a higher-order operator.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TimelinePart {
    /// The piece, of a program that is cut where sizes are learnt from data.
    pub piece: usize,
    /// For a body: its name, and who calls it.
    pub body: Option<Body>,
    /// The node that runs after this piece, outside of the arena, and from whose results sizes are learnt.
    pub learns: Option<Arc<Site>>,
    /// Bytes of the arena.
    pub arena_bytes: i64,
    /// Largest sum of bytes that live at one step.
    pub lower_bound_bytes: i64,
    /// The proved lower bound: the live bytes, or more where a search excluded all smaller arenas.
    pub at_least_bytes: i64,
    /// Whether the arena is proved as small as it can be.
    pub optimal: bool,
    /// Bytes of the arena that live at each step, in the blocks that a plan gives out.
    pub live: Vec<i64>,
    /// The steps, in order.
    pub steps: Vec<StepRow>,
    /// All buffers that a step touches.
    pub buffers: Vec<BufferRow>,
    /// All values in them, in program order.
    pub values: Vec<ValueRow>,
}

/// A body's name and its callers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Body {
    /// Its name.
    pub name: String,
    /// The part whose steps call it.
    pub part: usize,
    /// These steps.
    pub steps: Vec<usize>,
}

/// The work of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepKind {
    /// A kernel computes.
    Compute,
    /// A node is run that only moves elements: a copy.
    Copy,
    /// A value is moved to another place: a copy.
    Move,
    /// Nothing runs: the results are in place already (a view).
    Free,
}

/// A step.
#[derive(Clone, PartialEq, Debug)]
pub struct StepRow {
    /// Its work.
    pub kind: StepKind,
    /// Its node; of a move the node that made the value, if one did.
    pub site: Option<Arc<Site>>,
    /// Values that it reads.
    pub reads: Vec<BufferAccess>,
    /// Values that it writes; for a free step the places of its results.
    pub writes: Vec<BufferAccess>,
    /// Its scratch, a buffer.
    pub scratch: Option<usize>,
    /// Bytes that its results hold; of a move those that it writes.
    pub bytes: i64,
}

/// A value in a buffer: positions in [`TimelinePart::values`] and [`TimelinePart::buffers`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BufferAccess {
    /// The value.
    pub value: usize,
    /// The buffer.
    pub buffer: usize,
}

/// Whose memory a buffer is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// The arena's.
    Arena,
    /// The caller's or the instance's, or a weight.
    Input,
    /// An output's.
    Output,
}

/// A buffer and its life.
#[derive(Clone, PartialEq, Debug)]
pub struct BufferRow {
    /// Whose it is.
    pub owner: Owner,
    /// Its owner's name, as `%x`, `output 0` or `the arena`.
    pub name: String,
    /// Offset in the arena.
    pub offset: Option<i64>,
    /// Bytes.
    pub bytes: i64,
    /// First and last step that touches it.
    pub steps: (usize, usize),
    /// Where and when it takes memory of the arena: none for buffers elsewhere.
    pub life: Vec<Rect>,
    /// The values in it, in program order: positions in [`TimelinePart::values`].
    pub values: Vec<usize>,
    /// For scratch: the step.
    pub scratch_of: Option<usize>,
    /// For scratch of a higher-order operator: its bodies' arenas and borders lie here.
    pub frame: bool,
}

/// Bytes of the arena during some steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rect {
    /// First step.
    pub first: usize,
    /// Last step.
    pub last: usize,
    /// Offset in the arena.
    pub offset: i64,
    /// Bytes.
    pub bytes: i64,
}

/// A value and its life.
#[derive(Clone, PartialEq, Debug)]
pub struct ValueRow {
    /// Name.
    pub name: String,
    /// Type, as `f32[2, 3]`.
    pub ty: String,
    /// Bytes of its elements.
    pub bytes: i64,
    /// The buffer that it is made in, or given in.
    pub buffer: usize,
    /// The step that makes it; `None` for inputs.
    pub made: Option<usize>,
    /// The last step that reads it, if one does.
    pub read: Option<usize>,
    /// The decisions that put it on existing memory, and whose memory.
    pub reuse: Vec<(RemarkKind, Option<String>)>,
}

impl TimelinePart {
    /// The first step at which the most bytes of the arena live.
    pub fn peak(&self) -> Option<usize> {
        let most = *self.live.iter().max().filter(|m| **m > 0)?;
        self.live.iter().position(|l| *l == most)
    }

    /// The buffers of the arena that live at a step, those with the most bytes first.
    pub fn living(&self, step: usize) -> Vec<usize> {
        let at = |b: &BufferRow| bytes_at(b, step);
        let mut out: Vec<usize> = (0..self.buffers.len()).filter(|b| at(&self.buffers[*b]) > 0).collect();
        out.sort_by_key(|b| (std::cmp::Reverse(at(&self.buffers[*b])), self.buffers[*b].offset));
        out
    }
}

/// Bytes of the arena that a buffer takes at a step.
fn bytes_at(buffer: &BufferRow, step: usize) -> i64 {
    let alive = buffer.life.iter().filter(|r| r.first <= step && step <= r.last);
    alive.fold(0, |sum, r| sum.saturating_add(r.bytes))
}

/// Bytes that live at each step.
fn live(buffers: &[BufferRow], steps: usize) -> Vec<i64> {
    let mut changes = vec![0i128; steps + 1];
    for r in buffers.iter().flat_map(|b| &b.life) {
        changes[r.first] += i128::from(aligned(r.bytes));
        changes[r.last + 1] -= i128::from(aligned(r.bytes));
    }
    let mut sum = 0;
    let step = |change: &i128| {
        sum += change;
        i64::try_from(sum).unwrap_or(i64::MAX)
    };
    changes[..steps].iter().map(step).collect()
}

/// The part of one graph as placed and planned.
struct PartBuilder<'a> {
    graph: &'a Graph,
    body: Option<String>,
    placement: &'a Placement,
    piece: usize,
    sites: BTreeMap<NodeId, Arc<Site>>,
    /// Positions of placed values in `values`.
    numbers: BTreeMap<ValueId, usize>,
    values: Vec<ValueRow>,
    /// Positions of touched buffers in `buffers`, in order of their ids.
    rows: Vec<Option<usize>>,
    steps: Vec<StepRow>,
}

impl<'a> PartBuilder<'a> {
    fn new(piece: usize, program: &'a Program, id: GraphId, placement: &'a Placement) -> PartBuilder<'a> {
        let graph = &program.graphs[id];
        let body = (id != program.main).then(|| graph_name(graph, id));
        let sites = graph
            .ordered()
            .map(|(id, node)| (id, Arc::new(site(program, graph, node, piece, body.clone()))))
            .collect_map();
        PartBuilder {
            graph,
            body,
            placement,
            piece,
            sites,
            numbers: BTreeMap::new(),
            values: Vec::new(),
            rows: vec![None; placement.buffers.len()],
            steps: Vec::new(),
        }
    }

    fn build<'r>(mut self, plan: &Plan, remarks: impl Iterator<Item = &'r Remark>) -> TimelinePart {
        let spans = spans(self.placement);
        let mut touched = 0;
        for (row, life) in self.rows.iter_mut().zip(&spans) {
            *row = life.map(|_| {
                touched += 1;
                touched - 1
            });
        }
        self.name_values(remarks);
        for step in &self.placement.steps {
            let row = self.step(step);
            self.steps.push(row);
        }
        let buffers = self.buffers(plan, &spans);
        TimelinePart {
            piece: self.piece,
            body: None,
            learns: None,
            arena_bytes: plan.arena_bytes,
            lower_bound_bytes: plan.lower_bound_bytes,
            at_least_bytes: plan.at_least_bytes,
            optimal: plan.optimal,
            live: live(&buffers, self.steps.len()),
            steps: self.steps,
            buffers,
            values: self.values,
        }
    }

    /// Numbers all values in buffers that a step touches.
    fn name_values<'r>(&mut self, remarks: impl Iterator<Item = &'r Remark>) {
        let mut reuse: BTreeMap<NodeId, Vec<(RemarkKind, Option<String>)>> = BTreeMap::new();
        for r in remarks.filter(|r| !r.missed()) {
            let over = r.over.map(|v| format!("%{}", self.graph.values[v].name));
            reuse.entry(r.node).or_default().push((r.kind, over));
        }
        let graph = self.graph;
        let made = graph.ordered().flat_map(|(id, n)| n.results.iter().map(move |r| (*r, Some(id))));
        for (v, maker) in graph.inputs.iter().map(|v| (*v, None)).chain(made) {
            let Some(place) = &self.placement.places[v] else { continue };
            let Some(buffer) = self.rows[place.buffer.index()] else { continue };
            let value = &graph.values[v];
            self.numbers.insert(v, self.values.len());
            self.values.push(ValueRow {
                name: value.name.to_string(),
                ty: value.ty.to_string(),
                bytes: bytes_of(&value.ty),
                buffer,
                made: None,
                read: None,
                reuse: maker.and_then(|m| reuse.get(&m)).cloned().unwrap_or_default(),
            });
        }
    }

    fn step(&mut self, step: &Step) -> StepRow {
        let at = self.steps.len();
        match step {
            Step::Run { node: id, reads, writes } => {
                let copies = only_moves(self.graph, &self.graph.nodes[*id]);
                let kind = if copies { StepKind::Copy } else { StepKind::Compute };
                let scratch = self.placement.scratch.get(id).and_then(|b| self.rows[b.index()]);
                StepRow { scratch, ..self.node(at, kind, *id, reads, writes) }
            }
            Step::Move { value, from, to } => {
                let reads = self.accesses([*value], &[Some(Place::clone(from))]);
                let writes = self.accesses([*value], &[Some(Place::clone(to))]);
                reads.iter().for_each(|a| self.values[a.value].read = Some(at));
                let made = reads.first().and_then(|a| self.values[a.value].made);
                let site = made.and_then(|m| self.steps[m].site.clone());
                let bytes = bytes_of(&self.graph.values[*value].ty);
                StepRow { kind: StepKind::Move, site, reads, writes, scratch: None, bytes }
            }
            Step::Free { node: id } => {
                let node = &self.graph.nodes[*id];
                let lie = |v: ValueId| self.placement.places[v].clone();
                let reads: Vec<Option<Place>> = node.operands().map(lie).collect();
                let writes: Vec<Option<Place>> = node.results.iter().map(|r| lie(*r)).collect();
                self.node(at, StepKind::Free, *id, &reads, &writes)
            }
        }
    }

    /// The row of a node's step.
    fn node(
        &mut self,
        at: usize,
        kind: StepKind,
        id: NodeId,
        reads: &[Option<Place>],
        writes: &[Option<Place>],
    ) -> StepRow {
        let node = &self.graph.nodes[id];
        let reads = self.accesses(node.operands(), reads);
        let writes = self.accesses(node.results.iter().copied(), writes);
        reads.iter().for_each(|a| self.values[a.value].read = Some(at));
        writes.iter().for_each(|a| self.values[a.value].made = Some(at));
        StepRow { kind, site: self.sites.get(&id).cloned(), reads, writes, scratch: None, bytes: self.bytes(id) }
    }

    /// Values at places, without numbers and unused values.
    fn accesses(&self, values: impl IntoIterator<Item = ValueId>, places: &[Option<Place>]) -> Vec<BufferAccess> {
        let access = |(v, place): (ValueId, &Option<Place>)| {
            Some(BufferAccess { value: *self.numbers.get(&v)?, buffer: self.rows[place.as_ref()?.buffer.index()]? })
        };
        values.into_iter().zip(places).filter_map(access).collect()
    }

    fn bytes(&self, node: NodeId) -> i64 {
        let results = &self.graph.nodes[node].results;
        results.iter().map(|r| bytes_of(&self.graph.values[*r].ty)).fold(0, i64::saturating_add)
    }

    fn buffers(&self, plan: &Plan, spans: &[Option<(usize, usize)>]) -> Vec<BufferRow> {
        let mut values: Vec<Vec<usize>> = vec![Vec::new(); self.rows.len()];
        for (v, number) in &self.numbers {
            if let Some(place) = &self.placement.places[*v] {
                values[place.buffer.index()].push(*number);
            }
        }
        let mut scratch = BTreeMap::new();
        for (at, step) in self.placement.steps.iter().enumerate() {
            if let Step::Run { node, .. } = step
                && let Some(buffer) = self.placement.scratch.get(node)
            {
                scratch.insert(*buffer, (at, self.graph.nodes[*node].op.def().hop.is_some()));
            }
        }
        let lives = lives(self.graph, self.placement);
        let mut out = Vec::new();
        for (id, buffer) in self.placement.buffers.iter() {
            let Some(steps) = spans[id.index()] else { continue };
            let (owner, offset) = match buffer.kind {
                BufferKind::Arena => (Owner::Arena, plan.offsets[id]),
                BufferKind::Input(_) => (Owner::Input, None),
                BufferKind::Output(_) => (Owner::Output, None),
            };
            let rect = |at: i64, l: &Live| {
                let (from, to) = (l.bytes.start, l.bytes.end.min(buffer.bytes));
                Rect { first: *l.steps.start(), last: *l.steps.end(), offset: at + from, bytes: to - from }
            };
            let life = offset.map_or_else(Vec::new, |at| lives[id].iter().map(|l| rect(at, l)).collect());
            let mut values = std::mem::take(&mut values[id.index()]);
            values.sort_unstable();
            out.push(BufferRow {
                owner,
                name: memory_name(self.graph, self.placement, self.body.is_some(), id),
                offset,
                bytes: buffer.bytes,
                steps,
                life,
                values,
                scratch_of: scratch.get(&id).map(|s| s.0),
                frame: scratch.get(&id).is_some_and(|s| s.1),
            });
        }
        out
    }
}

/// Appends a segment and, recursively, the bodies that its steps call.
fn add_segment(parts: &mut Vec<TimelinePart>, number: usize, segment: &PreparedSegment) {
    let program = &segment.program;
    // Graph, where it is placed, its plan, and who calls it.
    let mut open: Vec<(GraphId, &Placement, &Plan, Option<Body>)> =
        vec![(program.main, &segment.placement, &segment.plan, None)];
    while let Some((id, placement, plan, body)) = open.pop() {
        let remarks = segment.remarks.iter().filter(|r| r.graph == id);
        let part = TimelinePart { body, ..PartBuilder::new(number, program, id, placement).build(plan, remarks) };
        let mut calls: BTreeMap<GraphId, Vec<usize>> = BTreeMap::new();
        for (at, step) in placement.steps.iter().enumerate() {
            let Step::Run { node, .. } = step else { continue };
            for body in program.graphs[id].nodes[*node].bodies() {
                calls.entry(body).or_default().push(at);
            }
        }
        // Taken from the back: the first body comes first.
        for (&body, nested) in placement.nested.iter().rev() {
            let name = graph_name(&program.graphs[body], body);
            let steps = calls.remove(&body).unwrap_or_default();
            open.push((body, &nested.placement, &nested.plan, Some(Body { name, part: parts.len(), steps })));
        }
        parts.push(part);
    }
}

impl Prepared {
    /// The report, the timeline and the explanation.
    pub fn overview(&self) -> Overview {
        Overview { report: self.report(), timeline: self.timeline(), explanation: self.explain() }
    }

    /// The steps and the memory that they use.
    pub fn timeline(&self) -> Timeline {
        let functional = self.compiled.functional();
        let mut out = Timeline { program: functional.name.to_string(), ..Timeline::default() };
        for (number, segment) in self.segments.iter().enumerate() {
            let main = out.parts.len();
            add_segment(&mut out.parts, number, segment);
            let learn = self.compiled.segments()[number].learn.as_ref();
            out.parts[main].learns = learn.map(|l| {
                let graph = functional.graph();
                Arc::new(site(functional, graph, &graph.nodes[l.position], number, None))
            });
        }
        let mut storages = BTreeSet::new();
        for i in 0..functional.signature.inputs.len() {
            let weight = functional.weight_name(i).and_then(|n| functional.weights.tensors.get(n));
            storages.extend(weight.map(|w| w.storage));
        }
        let lengths = storages.iter().filter_map(|s| functional.weights.storages.get(*s));
        out.weight_bytes = lengths.map(|s| s.len() as i64).sum();
        // The last segment knows the sizes of all inputs.
        if let Some(program) = self.segments.last().map(|p| &p.program) {
            let given = program.signature.inputs.iter().filter(|i| matches!(i.kind, InputKind::User(_)));
            out.input_bytes = given.map(|i| bytes_of(&program.graph().values[i.value].ty)).sum();
        }
        out
    }
}
