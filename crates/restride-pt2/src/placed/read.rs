//! Reads a plan back.

use super::{FORMAT, GraphPlan, KindFile, PLAN, PlaceFile, PlanFile, StepFile, digest};
use crate::archive::Archive;
use crate::model;
use restride_ir::{
    Binding, Buffer, BufferId, BufferKind, Error, ErrorKind, Graph, GraphId, Id, Layout, MemorySpace, Meta, Nested,
    NodeId, Place, Placement, Plan, Program, Result, Scalar, Step, ValueId, aligned,
};
use restride_tensor::Bytes;
use std::collections::{BTreeMap, HashMap};

/// Largest number of bytes, stride or offset that is accepted.
const MOST: i64 = 1 << 48;

/// Largest alignment of buffers that is accepted.
const MOST_ALIGN: i64 = 1 << 30;

/// Advice for a plan that does not fit.
const HELP: &str = "compile the program again with this version, or run the file that was compiled";

/// Placement and plan of a program, as read from its file.
#[derive(Clone, Debug)]
pub struct SavedPlan {
    sizes: Vec<(String, Scalar)>,
    segments: Vec<GraphPlan>,
}

/// The plan beside a model of an archive, if there is one.
///
/// # Errors
/// A damaged file; a plan of another version, or for another program.
pub fn saved_plan(bytes: &Bytes, model: Option<&str>) -> Result<Option<SavedPlan>> {
    let archive = Archive::open(bytes)?;
    let Some(path) = archive.extra_files().find(|(name, _)| *name == PLAN).map(|(_, path)| path.to_string()) else {
        return Ok(None);
    };
    let file: PlanFile = model::parse(&archive.read(&path)?)?;
    if file.format != FORMAT {
        return refuse(format!("{PLAN} is of form {}, not {FORMAT}", file.format));
    }
    let model = archive.program_path(archive.pick_model(model)?);
    if file.model_sha256 != digest(&archive.read(&model)?) {
        return refuse(format!("{PLAN} is the plan of another program than {model}"));
    }
    let sizes = file.sizes.into_iter().map(|(name, text)| Ok((name, number(&text)?))).collect::<Result<_>>()?;
    Ok(Some(SavedPlan { sizes, segments: file.segments }))
}

fn refuse<T>(what: impl Into<String>) -> Result<T> {
    Err(Error::new(ErrorKind::File, what).help(HELP))
}

fn number(text: &str) -> Result<Scalar> {
    let read = || {
        let whole = || text.parse().map(Scalar::Int).ok();
        text.parse().map(Scalar::Bool).ok().or_else(whole).or_else(|| text.parse().map(Scalar::Float).ok())
    };
    read().map_or_else(|| refuse(format!("{PLAN} has a size that is not a number: {text}")), Ok)
}

impl SavedPlan {
    /// Whether it was made for these sizes.
    pub fn is_for(&self, sizes: &Binding) -> bool {
        let have = sizes.iter().map(|(s, v)| (s.name(), *v));
        sizes.len() == self.sizes.len() && have.eq(self.sizes.iter().map(|(s, v)| (s.as_str(), *v)))
    }

    /// Bytes of its arena.
    pub fn arena_bytes(&self) -> i64 {
        self.segments.iter().map(|s| s.arena_bytes).max().unwrap_or(0)
    }

    /// The placed nodes of a segment, if some of them run again. `program` is the segment in which each runs once.
    ///
    /// # Errors
    /// A position beyond the program's nodes.
    pub fn sequence(&self, at: usize, program: &Program) -> Result<Option<Vec<NodeId>>> {
        let Some(sequence) = self.segments.get(at).and_then(|s| s.sequence.as_ref()) else { return Ok(None) };
        let order = &program.graph().order;
        let node = |&k: &usize| match order.get(k) {
            Some(id) => Ok(*id),
            None => refuse(format!("{PLAN} runs a node {k} of {}", order.len())),
        };
        sequence.iter().map(node).collect::<Result<_>>().map(Some)
    }

    /// The groups of nodes that a segment runs as one. `program` is the segment in the order in which its nodes run.
    ///
    /// # Errors
    /// A graph that the program lacks.
    pub fn groups(&self, at: usize, program: &Program) -> Result<BTreeMap<GraphId, Vec<Vec<usize>>>> {
        let mut out = BTreeMap::new();
        for (graph, groups) in self.segments.get(at).iter().flat_map(|s| &s.fused) {
            if *graph >= program.graphs.len() {
                return refuse(format!("{PLAN} has a graph {graph}"));
            }
            out.insert(GraphId::new(*graph), groups.clone());
        }
        Ok(out)
    }

    /// The placement and the plan of a segment, which is `program`.
    ///
    /// # Errors
    /// A plan that does not fit the program.
    pub fn segment(&self, at: usize, program: &Program) -> Result<(Placement, Plan)> {
        match self.segments.get(at) {
            Some(plan) => restore(plan, program, program.main, 0),
            None => refuse(format!("{PLAN} has no segment {at}")),
        }
    }
}

/// A graph whose plan is being read.
struct PlacementReader<'a> {
    graph: &'a Graph,
    values: HashMap<&'a str, ValueId>,
    buffers: &'a restride_ir::IdArena<BufferId, Buffer>,
}

fn restore(file: &GraphPlan, program: &Program, id: GraphId, depth: usize) -> Result<(Placement, Plan)> {
    let graph = &program.graphs[id];
    let mut placement = Placement::default();
    let mut plan = Plan {
        arena_bytes: file.arena_bytes,
        lower_bound_bytes: file.lower_bound_bytes,
        at_least_bytes: file.at_least_bytes,
        optimal: file.optimal,
        align: file.align,
        spilled_at_least: file.spilled_at_least,
        ..Plan::default()
    };
    if !(0..=MOST_ALIGN).contains(&file.align) || file.align.count_ones() > 1 {
        return refuse(format!("{PLAN} has buffers aligned to {} bytes", file.align));
    }
    let mut whole = 0i64;
    for b in &file.buffers {
        let kind = match (b.kind, b.position) {
            (KindFile::Arena, None) => BufferKind::Arena,
            (KindFile::Input, Some(i)) if i < graph.inputs.len() => BufferKind::Input(i),
            (KindFile::Output, Some(i)) if i < graph.outputs.len() => BufferKind::Output(i),
            _ => {
                return refuse(format!("{PLAN} has a buffer {:?} {:?}, which the program lacks", b.kind, b.position));
            }
        };
        let fits = |n: i64| (0..=MOST).contains(&n);
        if !fits(b.bytes) || !b.offset.is_none_or(fits) {
            return refuse(format!("{PLAN} has a buffer of {} bytes at {:?}", b.bytes, b.offset));
        }
        if kind == BufferKind::Arena {
            whole = whole.saturating_add(aligned(b.bytes).saturating_add(file.align));
        }
        let buffer = placement.buffers.push(Buffer { kind, bytes: b.bytes });
        if b.offset.is_some() {
            plan.offsets.set(buffer, b.offset);
        }
    }
    if !(0..=whole).contains(&file.arena_bytes) {
        return refuse(format!("{PLAN} has an arena of {} bytes for {whole} bytes of buffers", file.arena_bytes));
    }
    let mut values = HashMap::with_capacity(graph.values.len());
    for v in graph.values.ids() {
        if values.insert(&*graph.values[v].name, v).is_some() {
            return refuse(format!("two values of the program are called %{}", graph.values[v].name));
        }
    }
    let reader = PlacementReader { graph, values, buffers: &placement.buffers };
    for (name, place) in &file.values {
        let value = reader.value(name)?;
        placement.places.set(value, Some(reader.place(place, value)?));
    }
    for m in &file.memories {
        let pinned = m.pinned.iter().map(|name| reader.value(name)).collect::<Result<_>>()?;
        let (name, start, bytes) = (m.name.clone(), m.start, m.bytes);
        plan.memories.push(MemorySpace { name, start, bytes, capacity: m.capacity, traffic: m.traffic, pinned });
    }
    placement.steps = file.steps.iter().map(|s| reader.step(s)).collect::<Result<_>>()?;
    for &(node, buffer) in &file.scratch {
        placement.scratch.insert(reader.node(node)?, reader.buffer(buffer)?);
    }
    for (&body, file) in &file.bodies {
        // Graphs call each other without cycles, so nesting deeper than the number of graphs is damage.
        if body >= program.graphs.len() || depth >= program.graphs.len() {
            return refuse(format!("{PLAN} has a graph {body}"));
        }
        let body = GraphId::new(body);
        let (inner, plan) = restore(&file.graph, program, body, depth + 1)?;
        placement.nested.insert(body, Nested { placement: inner, plan, carried: file.carried });
    }
    Ok((placement, plan))
}

impl PlacementReader<'_> {
    fn value(&self, name: &str) -> Result<ValueId> {
        self.values.get(name).copied().map_or_else(|| refuse(format!("{PLAN} has a value %{name}")), Ok)
    }

    fn node(&self, at: usize) -> Result<restride_ir::NodeId> {
        self.graph.order.get(at).copied().map_or_else(|| refuse(format!("{PLAN} has a node {at}")), Ok)
    }

    fn buffer(&self, at: usize) -> Result<BufferId> {
        if at >= self.buffers.len() {
            return refuse(format!("{PLAN} has no buffer {at}"));
        }
        Ok(BufferId::new(at))
    }

    /// The place of a value, checked against its sizes and its buffer.
    fn place(&self, file: &PlaceFile, value: ValueId) -> Result<Place> {
        let buffer = self.buffer(file.buffer)?;
        let name = &self.graph.values[value].name;
        let ty: Option<Meta> = self.graph.values[value].ty.tensor().and_then(|t| t.known());
        let Some(ty) = ty else { return refuse(format!("{PLAN} has a place for %{name}, which is no tensor")) };
        let small = |n: &i64| (-MOST..=MOST).contains(n);
        let numbers = file.strides.iter().chain([&file.offset]).all(small);
        if ty.layout.sizes[..] != file.sizes[..] || file.strides.len() != file.sizes.len() || !numbers {
            return refuse(format!("{PLAN} has a place for %{name} that is not of its sizes"));
        }
        let reach = |low: bool| {
            let last = file.sizes.iter().zip(&file.strides);
            let along = last.filter(|(_, s)| (**s < 0) == low).map(|(n, s)| i128::from(n - 1) * i128::from(*s));
            i128::from(file.offset) + along.sum::<i128>()
        };
        let bytes = i128::from(self.buffers[buffer].bytes);
        let inside = reach(true) >= 0 && (reach(false) + 1) * ty.dtype.size() as i128 <= bytes;
        if !inside && !file.sizes.contains(&0) {
            return refuse(format!("{PLAN} has %{name} outside of its buffer"));
        }
        Ok(Place { buffer, layout: Layout::strided(&file.sizes, &file.strides, file.offset) })
    }

    fn places(&self, files: &[Option<PlaceFile>], values: &[ValueId]) -> Result<Vec<Option<Place>>> {
        if files.len() != values.len() {
            return refuse(format!("{PLAN} has {} places for {} values", files.len(), values.len()));
        }
        files.iter().zip(values).map(|(f, v)| f.as_ref().map(|f| self.place(f, *v)).transpose()).collect()
    }

    fn step(&self, file: &StepFile) -> Result<Step> {
        Ok(match file {
            StepFile::Run { node, reads, writes } => {
                let node = self.node(*node)?;
                let operands: Vec<ValueId> = self.graph.nodes[node].operands().collect();
                let reads = self.places(reads, &operands)?;
                Step::Run { node, reads, writes: self.places(writes, &self.graph.nodes[node].results)? }
            }
            StepFile::Move { value, from, to } => {
                let value = self.value(value)?;
                Step::Move { value, from: self.place(from, value)?.into(), to: self.place(to, value)?.into() }
            }
            StepFile::Free { node } => Step::Free { node: self.node(*node)? },
        })
    }
}
