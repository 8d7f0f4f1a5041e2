//! The placement checker: walks the steps with facts about memory.

use crate::facts::{Fact, KnownMemory};
use crate::first_element::first;
use crate::in_flight::{HeldMemory, in_order};
use crate::{Fault, FaultKind};
use restride_ir::{
    Arg, BufferId, BufferKind, CollectTree, Graph, GraphId, HopCall, InputKind, Layout, LoopFrame, Meta, Movement,
    Nested, NodeId, OutputKind, Place, Placement, Program, Step, Table, Type, ValueId, border_layout,
};
use restride_tensor::{Overlap, overlap_bytes, self_overlaps};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Largest number of faults that are listed.
const MOST: usize = 100;

/// Checks a placement of a functional program with known sizes. The crate's documentation says what this proves.
///
/// # Errors
/// The faults in the order of the steps, at most a hundred.
pub fn placement(program: &Program, placement: &Placement) -> Result<(), Vec<Fault>> {
    let faults = check(program, program.main, placement, None);
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

fn check(program: &Program, id: GraphId, placement: &Placement, body: Option<usize>) -> Vec<Fault> {
    let Some(graph) = program.graphs.get(id) else {
        return vec![Fault::new(FaultKind::Malformed, Some(id), "a body that is not in the program")];
    };
    let mut walk = PlacementWalk::new(program, id, graph, placement, body);
    if !walk.well_formed() {
        walk.faults.truncate(MOST);
        return walk.faults;
    }
    walk.start();
    for step in 0..placement.steps.len() {
        walk.at = Some(step);
        walk.step(step);
        if walk.faults.len() >= MOST {
            return walk.faults;
        }
    }
    walk.at = None;
    walk.node = None;
    walk.end();
    walk.faults
}

pub(crate) struct PlacementWalk<'a> {
    pub program: &'a Program,
    pub id: GraphId,
    pub graph: &'a Graph,
    pub placement: &'a Placement,
    /// Number of carried inputs, in a body.
    body: Option<usize>,
    pub metas: Table<ValueId, Option<Meta>>,
    /// Last step that uses a value; beyond all steps for outputs.
    last: Table<ValueId, Option<usize>>,
    /// Places that values are read and moved from, for values whose place no declared map determines.
    pub seen_at: Table<ValueId, Vec<&'a Place>>,
    /// For each buffer of a mutated input, the input's cells.
    mutated: BTreeMap<BufferId, Meta>,
    /// Scratch buffers, which hold no value.
    working: BTreeSet<BufferId>,
    /// Results of scatters and `cat` without work.
    pub put_together: Table<ValueId, bool>,
    inputs: BTreeMap<usize, BufferId>,
    outputs: BTreeMap<usize, BufferId>,
    done: Table<NodeId, bool>,
    pub memory: KnownMemory,
    /// Exchanges that have started and not been waited for, in the order of their starts.
    pub flights: Vec<HeldMemory>,
    /// Nodes whose exchanges have not started, in the program's order.
    pub to_exchange: VecDeque<NodeId>,
    pub faults: Vec<Fault>,
    pub at: Option<usize>,
    pub node: Option<NodeId>,
}

impl<'a> PlacementWalk<'a> {
    fn new(program: &'a Program, id: GraphId, graph: &'a Graph, placement: &'a Placement, body: Option<usize>) -> Self {
        let mut metas = Table::with_capacity(graph.values.len());
        for (v, value) in graph.values.iter() {
            if let Type::Tensor(t) = &value.ty {
                metas.set(v, t.known());
            }
        }
        let mut last = Table::with_capacity(graph.values.len());
        let mut seen_at: Table<ValueId, Vec<&Place>> = Table::with_capacity(graph.values.len());
        let mut put_together = Table::new();
        for (at, step) in placement.steps.iter().enumerate() {
            match step {
                Step::Run { node, reads, .. } => {
                    if let Some(node) = graph.nodes.get(*node) {
                        for (v, place) in node.operands().zip(reads) {
                            last.set(v, Some(at));
                            seen_at.entry(v).extend(place.as_ref());
                        }
                    }
                }
                Step::Free { node } => {
                    if let Some(node) = graph.nodes.get(*node) {
                        node.operands().for_each(|v| last.set(v, Some(at)));
                        if let Some(Movement::Scatter { .. } | Movement::Assemble(_)) = node.op.def().movement {
                            node.results.iter().for_each(|r| put_together.set(*r, true));
                        }
                    }
                }
                Step::Move { value, from, .. } => {
                    last.set(*value, Some(at));
                    seen_at.entry(*value).push(&**from);
                }
            }
        }
        graph.output_values().for_each(|v| last.set(v, Some(usize::MAX)));
        PlacementWalk {
            program,
            id,
            graph,
            placement,
            body,
            metas,
            last,
            seen_at,
            mutated: BTreeMap::new(),
            working: BTreeSet::new(),
            put_together,
            inputs: BTreeMap::new(),
            outputs: BTreeMap::new(),
            done: Table::with_capacity(graph.nodes.len()),
            memory: KnownMemory::new(placement.buffers.len()),
            flights: Vec::new(),
            to_exchange: in_order(program, graph),
            faults: Vec::new(),
            at: None,
            node: None,
        }
    }

    pub fn fault(&mut self, kind: FaultKind, value: Option<ValueId>, place: Option<&Place>, what: impl Into<String>) {
        self.fault_at(kind, value, place, None, what);
    }

    /// A fault at one element of a value.
    pub fn fault_at(
        &mut self,
        kind: FaultKind,
        value: Option<ValueId>,
        place: Option<&Place>,
        element: Option<Vec<i64>>,
        what: impl Into<String>,
    ) {
        let value = value.and_then(|v| self.graph.values.get(v)).map(|v| v.name.to_string());
        let (graph, place, what) = (Some(self.id), place.cloned(), what.into());
        self.faults.push(Fault { kind, graph, step: self.at, node: self.node, value, place, element, what });
    }

    /// Whether a later step uses a value.
    pub fn needed_later(&self, v: ValueId) -> bool {
        self.last[v].is_some_and(|l| Some(l) > self.at)
    }

    /// Required content of each mutated input's memory at the end.
    fn becomes(&self) -> BTreeMap<usize, ValueId> {
        let mut out = BTreeMap::new();
        if let Some(carried) = self.body {
            let next = Nested::becomes(self.graph, carried).into_iter().enumerate();
            out.extend(next.filter_map(|(i, v)| Some((i, v?))));
        } else {
            for (arg, spec) in self.graph.outputs.iter().zip(&self.program.signature.outputs) {
                if let (Arg::Value(v), OutputKind::Mutation(i)) = (arg, &spec.kind) {
                    out.insert(*i, *v);
                }
            }
        }
        out
    }

    /// Checks the buffers, and records the facts before the first step.
    fn start(&mut self) {
        let becomes = self.becomes();
        let covered: BTreeSet<usize> = if self.body.is_some() {
            BTreeSet::new()
        } else {
            let specs = self.program.signature.inputs.iter();
            specs.flat_map(|s| if let InputKind::Storage(of) = &s.kind { of.clone() } else { Vec::new() }).collect_set()
        };
        for (id, buffer) in self.placement.buffers.iter() {
            let (taken, there, what) = match buffer.kind {
                BufferKind::Arena => continue,
                BufferKind::Input(i) => (self.inputs.insert(i, id), i < self.graph.inputs.len(), "input"),
                BufferKind::Output(i) => (self.outputs.insert(i, id), i < self.graph.outputs.len(), "output"),
            };
            if taken.is_some() {
                self.fault(FaultKind::Malformed, None, None, format!("{id} is one of two buffers for the same {what}"));
            }
            if !there {
                self.fault(
                    FaultKind::Malformed,
                    None,
                    None,
                    format!("{id} is of an {what} that the graph does not have"),
                );
            }
        }
        for (&node, &buffer) in &self.placement.scratch {
            if self.placement.buffers.get(buffer).is_none_or(|b| b.kind != BufferKind::Arena) {
                self.fault(
                    FaultKind::Malformed,
                    None,
                    None,
                    format!("{buffer}, the scratch of {node}, is not in the arena"),
                );
            } else if !self.working.insert(buffer) {
                self.fault(FaultKind::Malformed, None, None, format!("{buffer} is the scratch of two nodes"));
            }
        }
        for (i, buffer) in self.inputs.clone() {
            let Some(&v) = self.graph.inputs.get(i) else { continue };
            let Some(meta) = self.metas[v].clone() else { continue };
            let layout = if self.body.is_some() { border_layout(&meta) } else { meta.layout.clone() };
            let place = Place { buffer, layout };
            if !self.inside(&place, meta.dtype.size()) {
                self.fault(FaultKind::Outside, Some(v), Some(&place), "leaves the buffer of its input");
                continue;
            }
            if becomes.contains_key(&i) {
                self.mutated.insert(buffer, Meta { layout: place.layout.clone(), ..meta });
            }
            // The graph reads an input under a declared storage through that storage only.
            if !covered.contains(&i) {
                self.learn(v, &place, Vec::new());
            }
        }
    }

    pub fn learn(&mut self, value: ValueId, place: &Place, holes: Vec<crate::facts::Hole>) {
        let Some(meta) = &self.metas[value] else { return };
        let element = meta.dtype.size();
        // An unused value needs no facts.
        if self.last[value].is_none() {
            return;
        }
        self.memory.learn(place.buffer, Fact { value, layout: place.layout.clone(), element, holes });
    }

    fn step(&mut self, at: usize) {
        let placement = self.placement;
        self.node = match &placement.steps[at] {
            Step::Run { node, .. } | Step::Free { node } => Some(*node),
            Step::Move { .. } => None,
        };
        if let Some(id) = self.node {
            if self.graph.nodes.get(id).is_none() {
                self.node = None;
                return self.fault(FaultKind::Malformed, None, None, format!("{id} is not in the graph"));
            }
            if std::mem::replace(self.done.entry(id), true) {
                self.fault(FaultKind::Malformed, None, None, "the node is carried out twice");
            }
        }
        match &placement.steps[at] {
            Step::Run { node, reads, writes } => self.run(at, *node, reads, writes),
            Step::Move { value, from, to } => self.moved(at, *value, from, to),
            Step::Free { node } => self.free(*node),
        }
        let used: Vec<ValueId> = match &placement.steps[at] {
            Step::Run { node, .. } | Step::Free { node } => self.graph.nodes[*node].operands().collect(),
            Step::Move { value, .. } => vec![*value],
        };
        for v in used {
            if self.last[v] == Some(at) {
                self.memory.forget(v);
            }
        }
    }

    /// Type of a value at a place: a tensor of known sizes, those of the place, inside of its buffer.
    pub fn placed(&mut self, v: ValueId, place: &Place) -> Option<Meta> {
        if self.graph.values.get(v).is_none() {
            self.fault(FaultKind::Malformed, None, Some(place), format!("{v} is not in the graph"));
            return None;
        }
        let Some(meta) = self.metas[v].clone() else {
            self.fault(FaultKind::Malformed, Some(v), Some(place), "has a place and is no tensor of known sizes");
            return None;
        };
        if place.layout.sizes != meta.layout.sizes || place.layout.strides.len() != place.layout.sizes.len() {
            let what = format!("has a place of other sizes than {meta}");
            self.fault(FaultKind::Malformed, Some(v), Some(place), what);
            return None;
        }
        if self.placement.buffers.get(place.buffer).is_none() {
            self.fault(FaultKind::Malformed, Some(v), Some(place), "is in a buffer that the placement does not have");
            return None;
        }
        if self.working.contains(&place.buffer) {
            self.fault(FaultKind::Malformed, Some(v), Some(place), "is in scratch");
            return None;
        }
        if !self.inside(place, meta.dtype.size()) {
            let element = first(&place.layout, |part| {
                !self.inside(&Place { buffer: place.buffer, layout: part.clone() }, meta.dtype.size())
            });
            self.fault_at(FaultKind::Outside, Some(v), Some(place), element, "leaves its buffer");
            return None;
        }
        Some(meta)
    }

    fn inside(&self, place: &Place, element: usize) -> bool {
        if place.layout.sizes.contains(&0) {
            return place.layout.offset >= 0;
        }
        let range = place.layout.cell_range();
        range.start >= 0
            && i128::from(range.end) * element as i128 <= i128::from(self.placement.buffers[place.buffer].bytes)
    }

    /// Checks a read.
    pub fn read(&mut self, v: ValueId, place: &Place) {
        let Some(meta) = self.placed(v, place) else { return };
        if meta.layout.sizes.contains(&0) {
            return;
        }
        self.not_in_flight(v, place, false);
        let (kind, what) =
            match self.memory.find(v, place.buffer, &place.layout).map(|f| f.holes.first().map(|h| h.step)) {
                Some(None) => return,
                Some(Some(by)) => (FaultKind::Overwritten, format!("is read after step {by} wrote over it")),
                None => (FaultKind::NotThere, "is read from cells in which no step stored it".to_string()),
            };
        let element = self.not_held(v, place).ok().flatten();
        self.fault_at(kind, Some(v), Some(place), element, what);
    }

    /// Checks that a step may write a value at a place.
    pub fn writable(&mut self, v: ValueId, place: &Place) -> Option<Meta> {
        let meta = self.placed(v, place)?;
        self.not_in_flight(v, place, true);
        if let BufferKind::Input(_) = self.placement.buffers[place.buffer].kind
            && !meta.layout.sizes.contains(&0)
        {
            let Some(input) = self.mutated.get(&place.buffer) else {
                self.fault(
                    FaultKind::ReadOnly,
                    Some(v),
                    Some(place),
                    "is written into an input that the program does not mutate",
                );
                return None;
            };
            let how = overlap_bytes(&place.layout, meta.dtype.size(), &input.layout, input.dtype.size());
            if !matches!(how, Overlap::Same | Overlap::Inside) {
                let beside = |part: &Layout| {
                    let how = overlap_bytes(part, meta.dtype.size(), &input.layout, input.dtype.size());
                    !matches!(how, Overlap::Same | Overlap::Inside)
                };
                let element = first(&place.layout, beside);
                let what = "is written beside the cells of the input";
                self.fault_at(FaultKind::ReadOnly, Some(v), Some(place), element, what);
                return None;
            }
        }
        Some(meta)
    }

    fn moved(&mut self, at: usize, v: ValueId, from: &Place, to: &Place) {
        self.read(v, from);
        let Some(meta) = self.writable(v, to) else { return };
        if from.buffer == to.buffer {
            match overlap_bytes(&from.layout, meta.dtype.size(), &to.layout, meta.dtype.size()) {
                Overlap::Disjoint => {}
                Overlap::Same => return,
                _ => {
                    let size = meta.dtype.size();
                    let meets = |part: &Layout| overlap_bytes(part, size, &from.layout, size) != Overlap::Disjoint;
                    let (element, what) = (first(&to.layout, meets), "is moved onto cells that the move reads");
                    self.fault_at(FaultKind::Overlap, Some(v), Some(to), element, what);
                }
            }
        }
        if self_overlaps(&apart(&to.layout, &from.layout)) != Some(false) {
            self.fault(FaultKind::Overlap, Some(v), Some(to), "is moved to cells that are not all different");
        }
        self.memory.write(to, meta.dtype.size(), at);
        self.learn(v, to, Vec::new());
    }

    /// Checks the bodies and the scratch of a higher-order node.
    pub fn bodies(&mut self, node: NodeId, reads: &[Option<Place>], writes: &[Option<Place>]) {
        let (program, placement) = (self.program, self.placement);
        let frame = match LoopFrame::of(&program.graphs, self.id, node, reads, writes, &placement.nested) {
            Ok(frame) => frame,
            Err(e) => return self.fault(FaultKind::Malformed, None, None, e.0),
        };
        self.enough(node, frame.bytes);
        if let Ok(Some(call)) = HopCall::of(self.graph, &self.graph.nodes[node]) {
            for body in call.bodies.iter().collect_set() {
                if let Some(nested) = placement.nested.get(body) {
                    self.faults.extend(check(program, *body, &nested.placement, Some(nested.carried)));
                }
            }
        }
    }

    /// Checks the size of a call's scratch.
    pub fn enough(&mut self, node: NodeId, bytes: i64) {
        let buffer = self.placement.scratch.get(&node).and_then(|b| self.placement.buffers.get(*b));
        let has = buffer.map_or(0, |b| b.bytes);
        if has < bytes {
            let what = format!("the call needs {bytes} bytes of scratch and has {has}");
            self.fault(FaultKind::Outside, None, None, what);
        }
    }

    /// Checks outputs and mutated inputs after the last step.
    fn end(&mut self) {
        self.all_landed();
        let specs = &self.program.signature.outputs;
        if self.body.is_none() && specs.len() != self.graph.outputs.len() {
            return self.fault(FaultKind::Malformed, None, None, "the signature's outputs are not those of the graph");
        }
        for (i, arg) in self.graph.outputs.iter().enumerate() {
            let Arg::Value(v) = arg else { continue };
            if !matches!(self.graph.values[*v].ty, Type::Tensor(_)) {
                continue;
            }
            let spec = self.body.is_none().then(|| &specs[i]);
            let (buffer, layout) = match spec.map(|s| &s.kind) {
                None if self.body.is_some_and(|carried| i < carried) => {
                    let meta = self.graph.inputs.get(i).and_then(|v| self.metas[*v].as_ref());
                    (self.inputs.get(&i), meta.map(border_layout))
                }
                Some(OutputKind::Mutation(k)) => {
                    let meta = self.graph.inputs.get(*k).and_then(|v| self.metas[*v].clone());
                    (self.inputs.get(k), meta.map(|m| m.layout))
                }
                Some(OutputKind::Metadata(_) | OutputKind::Token) => continue,
                _ if spec.is_some_and(|s| s.alias.is_some()) => continue,
                _ => (self.outputs.get(&i), self.metas[*v].as_ref().map(border_layout)),
            };
            match (buffer, layout) {
                (Some(&buffer), Some(layout)) => self.read(*v, &Place { buffer, layout }),
                _ => self.fault(FaultKind::Malformed, Some(*v), None, "is an output without memory"),
            }
        }
        for (id, node) in self.graph.ordered() {
            if node.op.def().effectful && !self.done[id] {
                self.node = Some(id);
                self.fault(FaultKind::Malformed, None, None, "has an effect and is never run");
            }
        }
    }
}

/// The target of a move without dimensions along which both places stay in one cell, where equal elements meet.
fn apart(to: &Layout, from: &Layout) -> Layout {
    let mut out = to.clone();
    for d in 0..to.rank().min(from.rank()) {
        if to.strides[d] == 0 && from.strides[d] == 0 && to.sizes[d] > 0 {
            out.sizes[d] = 1;
        }
    }
    out
}
