//! Placements as steps to carry out. Everything that could lead a step outside of its memory is refused here, once.

use super::caller_position;
use super::fused::FusedStep;
use super::memory::{CallerMemory, TypedPlace};
use restride_ir::{
    ARENA_ALIGN, Arg, Args, BufferId, Call, Error, Exchange, Expr, Graph, GraphId, HopCall, Id, Kernel, LoopFrame,
    Meta, Node, NodeId, Op, OpError, Place, Placement, Plan, Program, Result, Scalar, Step, Type, ValueId,
    border_layout, fused_body, input_meta, known_meta, lives, output_meta,
};
use restride_tensor::RawTensor;
use std::collections::BTreeMap;

/// The steps of one graph.
pub(super) struct Code {
    pub graph: GraphId,
    /// One per buffer.
    pub roots: Vec<BufferRoot>,
    pub steps: Vec<CodeStep>,
    /// The used part of each graph input, if it is a tensor with a buffer.
    pub inputs: Vec<Option<CallerMemory>>,
    /// Type and layout of each output that gets memory from the caller.
    pub outputs: Vec<Option<Meta>>,
    /// Largest alignment of each output's memory.
    pub output_align: Vec<usize>,
    pub nested: BTreeMap<GraphId, Code>,
    /// Whether some values are numbers, whose symbols each run learns for itself.
    pub numbers: bool,
    /// Per step: bytes of the arena that come alive with it, and that die after it.
    pub births: Changes,
    pub deaths: Changes,
    /// Per buffer: the steps that touch it.
    pub uses: Vec<Vec<usize>>,
    /// Bytes that one step at a time needs for results without a place.
    pub spare_bytes: usize,
}

/// Bytes that the caches are taken to hold: of more, steps find the caller's tensors, or the arena, in memory.
const CACHED: i64 = 16 << 20;

/// The memory of a buffer.
#[derive(Clone, Copy, Debug)]
pub(super) enum BufferRoot {
    Arena {
        offset: usize,
        bytes: usize,
    },
    Input(usize),
    Output(usize),
    /// An arena buffer that no step uses.
    Idle,
}

pub(super) struct CodeStep {
    pub node: Option<NodeId>,
    pub action: Action,
}

pub(super) enum Action {
    Nothing,
    /// From, to.
    Move(Box<(TypedPlace, TypedPlace)>),
    Kernel(Box<KernelStep>),
    /// The wait for the exchange that this node starts.
    Wait(NodeId),
    ControlFlow(Box<ControlFlowStep>),
    Fused(Box<FusedStep>),
}

/// Describes the exchange of a collective.
pub(super) type DescribeFn = fn(&Args<'_, Meta>) -> Result<Exchange, OpError>;

/// How a node computes.
#[derive(Clone, Copy)]
pub(super) enum NodeCode {
    Fixed(fn(&Call<'_>) -> Result<(), OpError>),
    Dynamic(fn(&Call<'_>) -> Result<Vec<RawTensor>, OpError>),
    Scalar(fn(&Call<'_>) -> Result<Scalar, OpError>),
    /// An exchange between ranks.
    Collective(DescribeFn),
    /// Composed of calls whose sizes are only known once they have run: by the interpreter, into memory of its own.
    Composed,
}

/// A call of a kernel.
pub(super) struct KernelStep {
    pub op: Op,
    pub compute: NodeCode,
    /// Arguments, with positions in `reads` for tensors.
    pub args: Vec<Arg<usize, Expr>>,
    pub reads: Vec<Option<TypedPlace>>,
    pub writes: Vec<Option<TypedPlace>>,
    /// Results without a place, which the kernel computes all the same: their byte in the spare memory, their types.
    pub unplaced: Vec<Option<(usize, Meta)>>,
    /// Numbers among the arguments are only known at the run: results are held against the shape rule then.
    pub late: bool,
    /// Eager types of the operands, where they are needed for that.
    pub types: Vec<Option<Meta>>,
    /// Scratch: its buffer and how many bytes it has.
    pub scratch: Option<(usize, usize)>,
    /// The node, if it starts an exchange that a later step waits for.
    pub starts: Option<NodeId>,
}

/// A call of bodies.
pub(super) struct ControlFlowStep {
    pub call: HopCall,
    pub frame: LoopFrame,
    /// Buffer of the scratch.
    pub scratch: Option<usize>,
    pub reads: Vec<Option<TypedPlace>>,
    pub writes: Vec<Option<TypedPlace>>,
    /// Per body and input, per body and output: how tensors lie at the border.
    pub body_inputs: Vec<Vec<Option<Meta>>>,
    pub body_outputs: Vec<Vec<Option<Meta>>>,
    /// How often `scan` and `map` run their body.
    pub trips: i64,
}

struct Maker<'a> {
    program: &'a Program,
    graph: &'a Graph,
    id: GraphId,
    placement: &'a Placement,
    roots: Vec<BufferRoot>,
    inputs: Vec<Option<CallerMemory>>,
    output_align: Vec<usize>,
    /// Of a body: how many of its inputs it replaces; the others are never written.
    body: Option<usize>,
    used: Vec<bool>,
    /// Of each buffer: whether its memory is too large for the caches.
    far: Vec<bool>,
    spare_bytes: usize,
}

impl Code {
    pub fn new(
        program: &Program,
        id: GraphId,
        placement: &Placement,
        plan: &Plan,
        body: Option<usize>,
    ) -> Result<Code> {
        let graph = program.graphs.get(id).ok_or_else(|| Error::invalid("a body that the program does not have"))?;
        let mut used = vec![false; placement.buffers.len()];
        for buffer in placement.steps.iter().flat_map(|s| placement.touched(s)) {
            *used.get_mut(buffer.index()).ok_or_else(|| Error::invalid(format!("the placement has no {buffer}")))? =
                true;
        }
        let mut maker = Maker {
            program,
            graph,
            id,
            placement,
            roots: Vec::with_capacity(placement.buffers.len()),
            inputs: vec![None; graph.inputs.len()],
            output_align: vec![1; graph.outputs.len()],
            body,
            used,
            far: Vec::new(),
            spare_bytes: 0,
        };
        let outputs = maker.roots(plan)?;
        maker.far = far(&maker.roots, placement, plan);
        let mut nested = BTreeMap::new();
        for (&body, inner) in &placement.nested {
            nested.insert(body, Code::new(program, body, &inner.placement, &inner.plan, Some(inner.carried))?);
        }
        let mut steps = Vec::with_capacity(placement.steps.len());
        for step in &placement.steps {
            steps.push(maker.step(step).map_err(|e| match step {
                Step::Run { node, .. } | Step::Free { node } if graph.nodes.get(*node).is_some() => e.at(graph, *node),
                _ => e,
            })?);
        }
        let (births, deaths) = changes(graph, placement);
        let uses = uses(placement);
        let Maker { roots, inputs, output_align, spare_bytes, .. } = maker;
        let numbers = graph.values.iter().any(|(_, v)| matches!(v.ty, Type::Scalar(_)));
        let graph = id;
        Ok(Code {
            graph,
            roots,
            steps,
            inputs,
            outputs,
            output_align,
            nested,
            numbers,
            births,
            deaths,
            uses,
            spare_bytes,
        })
    }
}

/// Per buffer, the steps that touch it.
fn uses(placement: &Placement) -> Vec<Vec<usize>> {
    let mut uses = vec![Vec::new(); placement.buffers.len()];
    for (at, step) in placement.steps.iter().enumerate() {
        for buffer in placement.touched(step) {
            let uses: &mut Vec<usize> = &mut uses[buffer.index()];
            if uses.last() != Some(&at) {
                uses.push(at);
            }
        }
    }
    uses
}

/// Bytes of arena buffers by the steps with which they come alive and after which they die.
pub(super) type Changes = Vec<Vec<(usize, std::ops::Range<usize>)>>;

fn changes(graph: &Graph, placement: &Placement) -> (Changes, Changes) {
    let (mut births, mut deaths) = (vec![Vec::new(); placement.steps.len()], vec![Vec::new(); placement.steps.len()]);
    let lives = lives(graph, placement);
    for (id, buffer) in placement.buffers.iter() {
        for live in &lives[id] {
            // Lives are in whole blocks; the last may reach past the buffer.
            let bytes = live.bytes.start as usize..live.bytes.end.min(buffer.bytes) as usize;
            births[*live.steps.start()].push((id.index(), bytes.clone()));
            deaths[*live.steps.end()].push((id.index(), bytes));
        }
    }
    (births, deaths)
}

/// Of each buffer: whether steps find it in memory, as the caller's tensors or the arena take more bytes than the caches hold.
fn far(roots: &[BufferRoot], placement: &Placement, plan: &Plan) -> Vec<bool> {
    let callers = |root: &BufferRoot| matches!(root, BufferRoot::Input(_) | BufferRoot::Output(_));
    let buffers = placement.buffers.iter().zip(roots).filter(|(_, root)| callers(root));
    let bytes = buffers.fold(0i64, |sum, ((_, b), _)| sum.saturating_add(b.bytes));
    let of = |root: &BufferRoot| match root {
        BufferRoot::Arena { .. } => plan.arena_bytes >= CACHED,
        _ => bytes >= CACHED,
    };
    roots.iter().map(of).collect()
}

impl Maker<'_> {
    /// Where each buffer is; gives the outputs that have one.
    fn roots(&mut self, plan: &Plan) -> Result<Vec<Option<Meta>>> {
        let mut outputs = vec![None; self.graph.outputs.len()];
        for (id, buffer) in self.placement.buffers.iter() {
            let bytes = usize::try_from(buffer.bytes).map_err(|_| Error::invalid(format!("{id} has no size")))?;
            let too_large = |room: i64| {
                (buffer.bytes > room).then(|| Error::invalid(format!("{id} of {bytes} bytes is larger than its value")))
            };
            let root = match caller_position(buffer.kind) {
                None => match plan.offsets[id] {
                    _ if !self.used[id.index()] => BufferRoot::Idle,
                    Some(offset)
                        if offset >= 0
                            && offset % ARENA_ALIGN == 0
                            && offset.checked_add(buffer.bytes).is_some_and(|end| end <= plan.arena_bytes) =>
                    {
                        BufferRoot::Arena { offset: offset as usize, bytes }
                    }
                    _ => return Err(Error::invalid(format!("{id} is not inside the arena"))),
                },
                Some((true, i)) => {
                    let ty = self.graph.inputs.get(i).ok_or_else(|| Error::invalid("a buffer of no input"))?;
                    let mut ty = known_meta(self.graph, *ty)?;
                    if self.body.is_some() {
                        ty.layout = border_layout(&ty);
                        too_large(restride_ir::layout_bytes(&ty.layout, ty.dtype.size())).map_or(Ok(()), Err)?;
                    }
                    if self.inputs[i].replace(CallerMemory::new(ty)).is_some() {
                        return Err(Error::invalid("two buffers for one input"));
                    }
                    BufferRoot::Input(i)
                }
                Some((false, i)) => {
                    let out = self.graph.outputs.get(i).ok_or_else(|| Error::invalid("a buffer of no output"))?;
                    let ty = output_meta(self.graph, out)?.ok_or_else(|| Error::invalid("a buffer of a number"))?;
                    let ty = Meta { layout: border_layout(&ty), dtype: ty.dtype };
                    too_large(restride_ir::layout_bytes(&ty.layout, ty.dtype.size())).map_or(Ok(()), Err)?;
                    if outputs[i].replace(ty).is_some() {
                        return Err(Error::invalid("two buffers for one output"));
                    }
                    BufferRoot::Output(i)
                }
            };
            self.roots.push(root);
        }
        Ok(outputs)
    }

    /// A place of a value, proved to be inside of its buffer.
    fn place(&mut self, v: ValueId, place: &Place, written: bool) -> Result<TypedPlace> {
        let name = || self.graph.values.get(v).map_or("?".into(), |v| v.name.clone());
        let outside = || Error::invalid(format!("%{} at {} {} leaves its buffer", name(), place.buffer, place.layout));
        if self.graph.values.get(v).is_none() {
            return Err(outside());
        }
        let ty = known_meta(self.graph, v)?;
        let layout = &place.layout;
        let buffer = self.placement.buffers.get(place.buffer).ok_or_else(outside)?;
        if layout.sizes != ty.layout.sizes || layout.strides.len() != layout.sizes.len() {
            return Err(Error::invalid(format!("%{} is {ty} and has a place of other sizes", name())));
        }
        let range = layout.cell_range();
        let inside = range.is_empty()
            || (range.start >= 0 && i128::from(range.end) * ty.dtype.size() as i128 <= i128::from(buffer.bytes));
        // A stride of a dimension without elements is never used, and its offset is of no element.
        if !inside || layout.offset < 0 {
            return Err(outside());
        }
        match caller_position(buffer.kind) {
            Some((true, i)) => {
                if written && self.body.is_some_and(|carried| i >= carried) && !range.is_empty() {
                    return Err(Error::invalid(format!("%{} is written into the input of a body", name())));
                }
                if let Some(memory) = &mut self.inputs[i] {
                    memory.touch(ty.dtype, layout, written);
                }
            }
            // A value without elements may be anywhere.
            Some((false, i)) if !range.is_empty() => {
                self.output_align[i] = self.output_align[i].max(ty.dtype.align());
            }
            _ => {}
        }
        Ok(TypedPlace { buffer: place.buffer.index(), dtype: ty.dtype, layout: layout.clone() })
    }

    fn places(
        &mut self,
        values: &[ValueId],
        places: &[Option<Place>],
        written: bool,
    ) -> Result<Vec<Option<TypedPlace>>> {
        if values.len() != places.len() {
            return Err(Error::invalid("a step has not one place for each operand and result"));
        }
        let spot = |(v, p): (&ValueId, &Option<Place>)| p.as_ref().map(|p| self.place(*v, p, written)).transpose();
        values.iter().zip(places).map(spot).collect()
    }

    fn step(&mut self, step: &Step) -> Result<CodeStep> {
        match step {
            Step::Free { node } => Ok(CodeStep { node: Some(*node), action: Action::Nothing }),
            Step::Move { value, from, to } => {
                let (from, to) = (self.place(*value, from, false)?, self.place(*value, to, true)?);
                Ok(CodeStep { node: None, action: Action::Move(Box::new((from, to))) })
            }
            Step::Run { node, reads, writes } => {
                let n =
                    self.graph.nodes.get(*node).ok_or_else(|| Error::invalid("a node that the graph does not have"))?;
                let operands: Vec<ValueId> = n.operands().collect();
                let reads = self.places(&operands, reads, false)?;
                let writes = self.places(&n.results, writes, true)?;
                let action = match (HopCall::of(self.graph, n)?, fused_body(n)) {
                    (Some(call), _) => self.control_flow(*node, call, reads, writes)?,
                    (None, Some(body)) => self.fused(*node, body, reads, writes)?,
                    (None, None) if n.op.def().awaits => self.wait(n)?,
                    (None, None) => self.kernel(*node, reads, writes)?,
                };
                Ok(CodeStep { node: Some(*node), action })
            }
        }
    }

    /// The wait for an exchange that another node starts.
    fn wait(&self, node: &Node) -> Result<Action> {
        let started = node.operands().next();
        let start = self.graph.ordered().find(|(_, n)| n.results.first().copied() == started);
        let start = start.filter(|(_, n)| matches!(n.op.def().kernel, Kernel::Collective(_)));
        start.map(|(id, _)| Action::Wait(id)).ok_or_else(|| Error::invalid("a wait for what is no exchange"))
    }

    fn kernel(
        &mut self,
        id: NodeId,
        reads: Vec<Option<TypedPlace>>,
        writes: Vec<Option<TypedPlace>>,
    ) -> Result<Action> {
        let node = &self.graph.nodes[id];
        let def = node.op.def();
        let is_tensor = |v: &ValueId| matches!(self.graph.values[*v].ty, Type::Tensor(_));
        let is_number = |v: &ValueId| matches!(self.graph.values[*v].ty, Type::Scalar(_));
        let compute = match def.kernel {
            _ if self.composed(id)? => NodeCode::Composed,
            Kernel::Fixed(run) => NodeCode::Fixed(run),
            Kernel::Dynamic(run) => NodeCode::Dynamic(run),
            Kernel::Scalar(run) => NodeCode::Scalar(run),
            Kernel::Collective(describe) => NodeCode::Collective(describe),
            // Its types tell its results.
            Kernel::None if !node.results.is_empty() && node.results.iter().all(is_number) => {
                return Ok(Action::Nothing);
            }
            Kernel::None => return Err(Error::unsupported(format!("{} has no kernel", node.op))),
        };
        let mut next = 0;
        let mut position = |_: &ValueId| {
            next += 1;
            next - 1
        };
        let mut args: Vec<Arg<usize, Expr>> = node.args.iter().map(|a| a.map_values(&mut position)).collect();
        // Operands that are numbers become numbers.
        let operands: Vec<ValueId> = node.operands().collect();
        for arg in &mut args {
            if let Arg::Value(k) = arg
                && reads[*k].is_none()
            {
                *arg = match &self.graph.values[operands[*k]].ty {
                    Type::Scalar(e) => Arg::Scalar(e.clone()),
                    Type::None => Arg::None,
                    _ => return Err(Error::invalid(format!("operand {k} of {} has no place", node.op))),
                };
            }
        }
        let late = args.iter().any(|a| a.scalars().iter().any(|e| e.constant().is_none()));
        let types = operands
            .iter()
            .map(|v| if is_tensor(v) { Ok(Some(known_meta(self.graph, *v)?)) } else { Ok(None) })
            .collect::<Result<Vec<_>>>()?;
        let mut unplaced = vec![None; node.results.len()];
        if let NodeCode::Fixed(_) | NodeCode::Collective(_) = compute {
            if late {
                for (write, r) in writes.iter().zip(&node.results) {
                    if write.is_none() && is_tensor(r) {
                        return Err(Error::invalid("a result without a place"));
                    }
                }
            } else {
                let metas = inferred(node.op, &args, &types, &|e| {
                    e.constant().ok_or_else(|| Error::invalid("a number that is not known"))
                })?;
                fit(&metas, &writes)?;
                let mut end = 0usize;
                for (k, meta) in metas.into_iter().enumerate().filter(|(k, _)| writes[*k].is_none()) {
                    let bytes = meta.layout.byte_range(meta.dtype.size()).map(|r| r.end);
                    let next = bytes.and_then(|b| end.checked_add(b)?.checked_next_multiple_of(ARENA_ALIGN as usize));
                    let next = next.ok_or_else(|| Error::invalid(format!("result {k} of {} has no size", node.op)))?;
                    unplaced[k] = Some((end, meta));
                    end = next;
                }
                self.spare_bytes = self.spare_bytes.max(end);
            }
        }
        let types = if late { types } else { Vec::new() };
        let own = node.results.first().copied();
        let waits = |(_, n): (NodeId, &Node)| n.op.def().awaits && n.operands().next() == own;
        let exchange = matches!(compute, NodeCode::Collective(_));
        let starts = (exchange && self.graph.ordered().any(waits)).then_some(id);
        let op = node.op;
        let scratch = self.scratch(id)?;
        Ok(Action::Kernel(Box::new(KernelStep {
            op,
            compute,
            args,
            reads,
            writes,
            unplaced,
            late,
            types,
            scratch,
            starts,
        })))
    }

    fn fused(
        &self,
        id: NodeId,
        body: GraphId,
        reads: Vec<Option<TypedPlace>>,
        writes: Vec<Option<TypedPlace>>,
    ) -> Result<Action> {
        let missing = || Error::invalid("an operand or a result of a fused node has no place");
        let body = self.program.graphs.get(body).ok_or_else(|| Error::invalid("a body that is not there"))?;
        let reads = reads.into_iter().collect::<Option<Vec<_>>>().ok_or_else(missing)?;
        let writes = writes.into_iter().collect::<Option<Vec<_>>>().ok_or_else(missing)?;
        let scratch = self.scratch(id)?;
        Ok(Action::Fused(Box::new(FusedStep::new(body, reads, writes, scratch, &self.far)?)))
    }

    /// The working memory of a node: its buffer and bytes.
    fn scratch(&self, id: NodeId) -> Result<Option<(usize, usize)>> {
        match self.placement.scratch.get(&id) {
            None => Ok(None),
            Some(b) => match self.roots.get(b.index()) {
                Some(&BufferRoot::Arena { bytes, .. }) => Ok(Some((b.index(), bytes))),
                _ => Err(Error::invalid(format!("{b}, scratch, is not in the arena"))),
            },
        }
    }

    /// Whether a call is composed although the operator has a kernel.
    fn composed(&self, id: NodeId) -> Result<bool> {
        let node = &self.graph.nodes[id];
        let Some(which) = node.op.def().composed else { return Ok(false) };
        let unknown = |e: &Expr| Error::unsupported(format!("the number {e} is not known before the run"));
        let args = node.args.iter().map(|a| {
            a.try_map(|v| known_meta(self.graph, *v).map_err(Error::from), |e| e.constant().ok_or_else(|| unknown(e)))
        });
        Ok(which(&Args(&args.collect::<Result<Vec<_>>>()?)))
    }

    fn control_flow(
        &mut self,
        id: NodeId,
        call: HopCall,
        reads: Vec<Option<TypedPlace>>,
        writes: Vec<Option<TypedPlace>>,
    ) -> Result<Action> {
        let place = |s: &Option<TypedPlace>| {
            s.as_ref().map(|s| Place { buffer: BufferId::new(s.buffer), layout: s.layout.clone() })
        };
        let (read_places, write_places): (Vec<_>, Vec<_>) =
            (reads.iter().map(place).collect(), writes.iter().map(place).collect());
        let graphs = &self.program.graphs;
        let frame = LoopFrame::of(graphs, self.id, id, &read_places, &write_places, &self.placement.nested)?;
        let scratch = self.placement.scratch.get(&id).copied();
        let room = scratch.and_then(|b| self.placement.buffers.get(b)).map_or(0, |b| b.bytes);
        let in_arena = scratch.is_none_or(|b| matches!(self.roots.get(b.index()), Some(BufferRoot::Arena { .. })));
        if room < frame.bytes || (frame.bytes > 0 && !in_arena) {
            return Err(Error::invalid(format!("the call needs {} bytes of scratch and has {room}", frame.bytes)));
        }
        let (mut body_inputs, mut body_outputs) = (Vec::new(), Vec::new());
        for &body in &call.bodies {
            let graph = &graphs[body];
            let inputs = graph.inputs.iter().enumerate().map(|(i, v)| match &graph.values[*v].ty {
                Type::Tensor(_) => {
                    let ty = input_meta(graph, i)?;
                    Ok(Some(Meta { layout: border_layout(&ty), dtype: ty.dtype }))
                }
                _ => Ok(None),
            });
            body_inputs.push(inputs.collect::<Result<Vec<_>>>()?);
            let outputs = graph
                .outputs
                .iter()
                .map(|o| Ok(output_meta(graph, o)?.map(|ty| Meta { layout: border_layout(&ty), dtype: ty.dtype })));
            body_outputs.push(outputs.collect::<Result<Vec<_>>>()?);
        }
        let sliced = matches!(call.hop, restride_ir::Hop::Scan | restride_ir::Hop::Map);
        let trips = if sliced { call.trips(self.graph)? } else { 0 };
        self.program.limits.check_trips(trips.unsigned_abs())?;
        if call.hop == restride_ir::Hop::Map && trips == 0 {
            return Err(Error::new(
                restride_ir::ErrorKind::Program,
                "map over no elements: PyTorch cannot tell the sizes of the results",
            ));
        }
        for (k, write) in writes.iter().enumerate().skip(call.carried.len()) {
            if let (true, Some(write)) = (sliced, write)
                && write.layout.sizes.first() != Some(&trips)
            {
                return Err(Error::invalid(format!("result {k} has not one slice for each of {trips} iterations")));
            }
        }
        for (r, write) in self.graph.nodes[id].results.iter().zip(&writes) {
            if matches!(self.graph.values[*r].ty, Type::Tensor(_)) && write.is_none() {
                return Err(Error::invalid("a result without a place"));
            }
        }
        let step = ControlFlowStep {
            call,
            frame,
            scratch: scratch.map(BufferId::index),
            reads,
            writes,
            body_inputs,
            body_outputs,
            trips,
        };
        Ok(Action::ControlFlow(Box::new(step)))
    }
}

/// The result types of a call by its shape rule.
pub(super) fn inferred(
    op: Op,
    args: &[Arg<usize, Expr>],
    types: &[Option<Meta>],
    number: &dyn Fn(&Expr) -> Result<Scalar>,
) -> Result<Vec<Meta>> {
    let rule = op.def().infer.ok_or_else(|| Error::unsupported(format!("{op} has no shape rule")))?;
    let tensor = |k: &usize| types[*k].clone().ok_or_else(|| Error::invalid("a number stands for a tensor"));
    let args: Vec<Arg<Meta, Scalar>> = args.iter().map(|a| a.try_map(tensor, number)).collect::<Result<_>>()?;
    Ok(rule(&Args(&args))?.into_vec())
}

/// Refuses declared types that differ from the shape rule's, which kernels write by.
pub(super) fn fit(metas: &[Meta], writes: &[Option<TypedPlace>]) -> Result<()> {
    if metas.len() != writes.len() {
        return Err(Error::invalid(format!("the operator gives {} results, not {}", metas.len(), writes.len())));
    }
    for (meta, write) in metas.iter().zip(writes) {
        if let Some(w) = write
            && (w.dtype != meta.dtype || w.layout.sizes != meta.layout.sizes)
        {
            let (dtype, sizes) = (w.dtype, &w.layout.sizes[..]);
            return Err(Error::invalid(format!("the operator gives {meta} where {dtype}{sizes:?} is declared")));
        }
    }
    Ok(())
}
