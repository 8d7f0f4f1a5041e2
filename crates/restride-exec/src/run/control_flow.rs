//! Control flow: bodies run in the call's scratch memory, as `Frame` lays it out, and mean what they mean in the interpreter.

use super::code::{Code, ControlFlowStep};
use super::memory::TypedPlace;
use super::steps::{BoundSteps, Mode, number};
use crate::control_flow::nested_iteration;
use crate::symbols::learn_number;
use restride_ir::{
    Arg, Binding, CarryPlace, Error, ErrorKind, Graph, Hop, HopItem, Meta, Node, Program, Result, Scalar, Type,
};
use restride_kernels::support::convert::copy_convert;
use restride_tensor::{DType, Layout, PerDim, View, ViewMut};

/// Elements in memory: the address of cell 0, their type and layout.
#[derive(Clone)]
struct TypedMemory {
    base: *mut u8,
    dtype: DType,
    layout: Layout,
}

impl TypedMemory {
    fn of(place: &TypedPlace, bases: &[*mut u8]) -> TypedMemory {
        TypedMemory { base: bases[place.buffer], dtype: place.dtype, layout: place.layout.clone() }
    }
    fn border(base: *mut u8, meta: &Meta) -> TypedMemory {
        TypedMemory { base, dtype: meta.dtype, layout: meta.layout.clone() }
    }
    fn first(&self) -> *mut u8 {
        self.base.wrapping_offset(self.layout.offset as isize * self.dtype.size() as isize)
    }
    /// One slice along dimension 0.
    fn slice(&self, i: i64) -> TypedMemory {
        let mut layout = self.layout.clone();
        layout.offset += i * layout.strides[0];
        layout.sizes.remove(0);
        layout.strides.remove(0);
        TypedMemory { layout, ..self.clone() }
    }
    /// # Safety
    /// Both are valid as far as their layouts reach, and apart.
    unsafe fn copy_to(&self, to: &TypedMemory) {
        // SAFETY: as promised by the caller.
        unsafe {
            copy_convert(
                View::from_raw(self.base, self.dtype, &self.layout),
                &ViewMut::from_raw(to.base, to.dtype, &to.layout),
            );
        }
    }
}

/// An input or output of a body.
#[derive(Clone)]
enum BodyValue {
    Tensor(TypedMemory),
    Number(Scalar),
    None,
}

/// Memory of a call, kept from call to call: the second one allocates nothing.
#[derive(Default)]
struct Workspace<'c> {
    /// Values that a loop carries, that it slices, and that all iterations get.
    carried: Vec<BodyValue>,
    xs: Vec<BodyValue>,
    rest: Vec<BodyValue>,
    /// Of one call of a body: its inputs, where its outputs go, and the numbers among them.
    inputs: Vec<BodyValue>,
    targets: Vec<Option<TypedMemory>>,
    numbers: Vec<Option<Scalar>>,
    bodies: Vec<BoundBody<'c>>,
}

/// A body, bound when it first runs.
#[derive(Default)]
struct BoundBody<'c> {
    steps: Option<BoundSteps<'c>>,
    inputs: Vec<Option<*mut u8>>,
    outputs: Vec<*mut u8>,
    bases: Vec<*mut u8>,
}

/// A call of bodies, bound to its code.
pub(super) struct BoundCall<'c> {
    program: &'c Program,
    code: &'c Code,
    step: &'c ControlFlowStep,
    graph: &'c Graph,
    node: &'c Node,
    work: Workspace<'c>,
}

/// A call while it runs.
struct LoopRun<'a, 'c> {
    program: &'c Program,
    code: &'c Code,
    step: &'c ControlFlowStep,
    mode: Mode,
    scratch: *mut u8,
    bases: &'a [*mut u8],
}

impl<'c> LoopRun<'_, 'c> {
    fn slot(&self, at: i64) -> *mut u8 {
        self.scratch.wrapping_add(at as usize)
    }
    /// Where a tensor that a loop carries is kept.
    fn kept(&self, k: usize) -> Option<TypedMemory> {
        let base = match (*self.step.frame.carried.get(k)?)? {
            CarryPlace::Slot(at) => self.slot(at),
            CarryPlace::Result => self.result(k)?.first(),
        };
        Some(TypedMemory::border(base, self.step.body_inputs.last()?[k].as_ref()?))
    }
    fn item(&self, item: &HopItem, symbols: &Binding) -> Result<BodyValue> {
        Ok(match item {
            HopItem::Tensor { operand, .. } => match &self.step.reads[*operand] {
                Some(place) => BodyValue::Tensor(TypedMemory::of(place, self.bases)),
                None => return Err(Error::invalid("an operand without a place")),
            },
            HopItem::Number(e) => BodyValue::Number(number(e, symbols)?),
            HopItem::None => BodyValue::None,
        })
    }
    fn items(&self, items: &[HopItem], symbols: &Binding, out: &mut Vec<BodyValue>) -> Result<()> {
        out.clear();
        for item in items {
            out.push(self.item(item, symbols)?);
        }
        Ok(())
    }
    /// The place of a result.
    fn result(&self, k: usize) -> Option<TypedMemory> {
        self.step.writes[k].as_ref().map(|w| TypedMemory::of(w, self.bases))
    }
    fn results(&self) -> impl Iterator<Item = Option<TypedMemory>> {
        (0..self.step.writes.len()).map(|k| self.result(k))
    }
}

impl<'c> BoundCall<'c> {
    pub fn new(
        program: &'c Program,
        code: &'c Code,
        step: &'c ControlFlowStep,
        graph: &'c Graph,
        node: &'c Node,
    ) -> BoundCall<'c> {
        BoundCall { program, code, step, graph, node, work: Workspace::default() }
    }

    /// Runs the call.
    ///
    /// # Safety
    /// `bases` are the addresses of the code's buffers, as `BoundSteps::new` asks for.
    pub unsafe fn run(&mut self, bases: &[*mut u8], mode: Mode, symbols: &mut Binding, iteration: u64) -> Result<()> {
        let BoundCall { program, code, step, graph, node, ref mut work } = *self;
        let scratch = step.scratch.map_or(std::ptr::NonNull::<u64>::dangling().as_ptr().cast(), |b| bases[b]);
        let run = LoopRun { program, code, step, mode, scratch, bases };
        // SAFETY: as promised by the caller.
        unsafe {
            match step.call.hop {
                Hop::Cond => run.cond(work, symbols, iteration)?,
                Hop::WhileLoop => run.while_loop(work, symbols, iteration)?,
                Hop::Scan | Hop::Map => run.scan(work, symbols, iteration)?,
            }
        }
        for (r, n) in node.results.iter().zip(&work.numbers) {
            if let (Type::Scalar(expr), Some(n)) = (&graph.values[*r].ty, n) {
                learn_number(expr, *n, symbols).map_err(|e| Error::invalid(format!("the number {e}")))?;
            }
        }
        Ok(())
    }
}

impl<'c> LoopRun<'_, 'c> {
    /// # Safety
    /// As [`BoundCall::run`].
    unsafe fn cond(&self, work: &mut Workspace<'c>, symbols: &mut Binding, iteration: u64) -> Result<()> {
        let pred = self.step.call.pred.as_ref().ok_or_else(|| Error::invalid("cond has no predicate"))?;
        let taken = match self.item(pred, symbols)? {
            // SAFETY: as promised by the caller.
            BodyValue::Tensor(d) => unsafe { truth(&d)? },
            BodyValue::Number(s) => s.as_bool(),
            BodyValue::None => return Err(Error::invalid("cond has no predicate")),
        };
        self.items(&self.step.call.rest, symbols, &mut work.inputs)?;
        work.targets.clear();
        work.targets.extend(self.results());
        // SAFETY: as promised by the caller.
        unsafe { self.body(usize::from(!taken), work, symbols, iteration) }
    }

    /// # Safety
    /// As [`BoundCall::run`].
    unsafe fn while_loop(&self, work: &mut Workspace<'c>, symbols: &mut Binding, iteration: u64) -> Result<()> {
        self.items(&self.step.call.rest, symbols, &mut work.rest)?;
        // SAFETY: as promised by the caller; so below.
        unsafe { begin(self, symbols, &mut work.carried)? };
        for i in 0u64.. {
            self.program.limits.check_trips(i)?;
            work.inputs.clear();
            work.inputs.extend(work.carried.iter().chain(&work.rest).cloned());
            work.targets.clear();
            work.targets.push(None);
            let within = nested_iteration(iteration, i);
            // SAFETY: as above.
            unsafe { self.body(0, work, symbols, within)? };
            let slot = self.step.frame.bodies[0].outputs.first().copied().flatten();
            let flag = self.step.body_outputs[0].first().and_then(Option::as_ref);
            let flag = flag.zip(slot).map(|(meta, at)| TypedMemory::border(self.slot(at), meta));
            let goes_on = match (flag, work.numbers.first().copied().flatten()) {
                // SAFETY: the slot is part of the frame, and the condition wrote it.
                (Some(d), _) if d.dtype == DType::Bool => unsafe { truth(&d)? },
                (None, Some(s @ Scalar::Bool(_))) => s.as_bool(),
                _ => {
                    let what = "cond_fn must return a boolean scalar tensor or a boolean";
                    return Err(Error::new(ErrorKind::Program, what));
                }
            };
            if !goes_on {
                break;
            }
            work.targets.clear();
            // SAFETY: as above.
            unsafe { self.body(1, work, symbols, within)? };
            next(&mut work.carried, &work.numbers);
        }
        // SAFETY: as above.
        unsafe { end(self, work) };
        Ok(())
    }

    /// # Safety
    /// As [`BoundCall::run`].
    unsafe fn scan(&self, work: &mut Workspace<'c>, symbols: &mut Binding, iteration: u64) -> Result<()> {
        let count = self.step.call.carried.len();
        self.items(&self.step.call.xs, symbols, &mut work.xs)?;
        self.items(&self.step.call.rest, symbols, &mut work.rest)?;
        // SAFETY: as promised by the caller; so below.
        unsafe { begin(self, symbols, &mut work.carried)? };
        for i in 0..self.step.trips {
            let slices = work.xs.iter().map(|x| match x {
                BodyValue::Tensor(d) => BodyValue::Tensor(d.slice(i)),
                other => other.clone(),
            });
            work.inputs.clear();
            work.inputs.extend(work.carried.iter().cloned().chain(slices).chain(work.rest.iter().cloned()));
            let slice = |(k, r): (usize, Option<TypedMemory>)| if k < count { None } else { r.map(|d| d.slice(i)) };
            work.targets.clear();
            work.targets.extend(self.results().enumerate().map(slice));
            let within = nested_iteration(iteration, i as u64);
            // SAFETY: as above.
            unsafe { self.body(0, work, symbols, within)? };
            next(&mut work.carried, &work.numbers);
        }
        // SAFETY: as above.
        unsafe { end(self, work) };
        Ok(())
    }

    /// Runs one body once on `work.inputs`, and copies its outputs to `work.targets`, numbers to `work.numbers`.
    ///
    /// # Safety
    /// As [`BoundCall::run`]; inputs and targets are valid as far as their layouts reach and have the body's sizes.
    unsafe fn body(&self, b: usize, work: &mut Workspace<'c>, symbols: &mut Binding, iteration: u64) -> Result<()> {
        let id = self.step.call.bodies[b];
        let code = self.code.nested.get(&id).ok_or_else(|| Error::invalid("a body that was not placed"))?;
        let graph = &self.program.graphs[id];
        let slots = &self.step.frame.bodies[b];
        // A body's own symbols end with it.
        let mut own;
        let symbols = if code.numbers {
            own = symbols.clone();
            &mut own
        } else {
            symbols
        };
        work.bodies.resize_with(work.bodies.len().max(b + 1), BoundBody::default);
        let Workspace { inputs, targets, numbers, bodies, .. } = work;
        let BoundBody { steps, inputs: addresses, outputs, bases } = &mut bodies[b];
        addresses.clear();
        for (i, item) in inputs.iter().enumerate() {
            addresses.push(match (item, &self.step.body_inputs[b][i]) {
                (BodyValue::Tensor(d), Some(meta)) => Some(match slots.inputs[i] {
                    None => d.first(),
                    Some(at) => {
                        let to = TypedMemory::border(self.slot(at), meta);
                        // SAFETY: the slot is part of the frame and holds the border layout; it is apart from all else.
                        unsafe { d.copy_to(&to) };
                        to.base
                    }
                }),
                (BodyValue::Number(s), None) => {
                    if let Type::Scalar(expr) = &graph.values[graph.inputs[i]].ty {
                        learn_number(expr, *s, symbols)
                            .map_err(|e| Error::invalid(format!("input {i} of a body {e}")))?;
                    }
                    None
                }
                (BodyValue::None, None) => None,
                _ => return Err(Error::invalid(format!("input {i} of a body is of another kind"))),
            });
        }
        outputs.clear();
        for (k, meta) in self.step.body_outputs[b].iter().enumerate() {
            outputs.push(match (meta, slots.outputs[k], targets.get(k)) {
                // Carried values stay in the input's memory.
                _ if k < self.step.call.replaced(b) => std::ptr::null_mut(),
                (None, ..) => std::ptr::null_mut(),
                (Some(_), Some(at), _) => self.slot(at),
                (Some(_), None, Some(Some(target))) => target.first(),
                _ => return Err(Error::invalid(format!("output {k} of a body has nowhere to go"))),
            });
        }
        let arena = self.slot(self.step.frame.arena);
        code.bases(arena, addresses, outputs, bases)?;
        // SAFETY: the frame has room for the body's arena; border layouts are those that the body was placed for. The steps
        // are moved to this iteration's addresses before they run.
        unsafe {
            let steps = match steps {
                Some(steps) => {
                    steps.rebase(bases);
                    steps
                }
                None => steps.insert(BoundSteps::new(self.program, code, bases.clone(), symbols)?),
            };
            steps.run(self.mode, symbols, iteration)?;
        }
        numbers.clear();
        for (k, arg) in graph.outputs.iter().enumerate() {
            if let (Some(meta), Some(at), Some(Some(target))) =
                (&self.step.body_outputs[b][k], slots.outputs[k], targets.get(k))
            {
                // SAFETY: the body wrote the slot, which is apart from all else.
                unsafe { TypedMemory::border(self.slot(at), meta).copy_to(target) };
            }
            numbers.push(match arg {
                Arg::Scalar(e) => Some(number(e, symbols)?),
                Arg::Value(v) => match &graph.values[*v].ty {
                    Type::Scalar(e) => Some(number(e, symbols)?),
                    _ => None,
                },
                _ => None,
            });
        }
        Ok(())
    }
}

/// Copies the values that a loop carries into its first iteration to where they are kept.
///
/// # Safety
/// As [`BoundCall::run`].
unsafe fn begin(run: &LoopRun<'_, '_>, symbols: &Binding, carried: &mut Vec<BodyValue>) -> Result<()> {
    run.items(&run.step.call.carried, symbols, carried)?;
    for (k, item) in carried.iter_mut().enumerate() {
        if let (BodyValue::Tensor(d), Some(kept)) = (&*item, run.kept(k)) {
            // A result that takes over the operand's memory needs no copy.
            if d.first() != kept.first() {
                // SAFETY: what is kept is in the frame, or in a result that is apart from all operands but this one, which it
                // would lie on exactly; it is of the operand's sizes.
                unsafe { d.copy_to(&kept) };
            }
            *item = BodyValue::Tensor(kept);
        }
    }
    Ok(())
}

/// Passes an iteration's numbers to the next one; tensors stay in their memory.
fn next(carried: &mut [BodyValue], numbers: &[Option<Scalar>]) {
    for (item, number) in carried.iter_mut().zip(numbers) {
        match (&*item, number) {
            (BodyValue::Tensor(_), _) => {}
            (_, Some(n)) => *item = BodyValue::Number(*n),
            (_, None) => *item = BodyValue::None,
        }
    }
}

/// Copies the carried values to the loop's results, numbers to `work.numbers`.
///
/// # Safety
/// As [`BoundCall::run`].
unsafe fn end(run: &LoopRun<'_, '_>, work: &mut Workspace<'_>) {
    work.numbers.clear();
    for (item, result) in work.carried.iter().zip(run.results()) {
        if let (BodyValue::Tensor(d), Some(result)) = (item, &result)
            && d.first() != result.first()
        {
            // SAFETY: what is kept elsewhere is in the frame, apart from the results, and of the result's sizes.
            unsafe { d.copy_to(result) };
        }
        work.numbers.push(if let BodyValue::Number(n) = item { Some(*n) } else { None });
    }
}

/// # Safety
/// The data is valid as far as its layout reaches.
unsafe fn truth(d: &TypedMemory) -> Result<bool> {
    if d.layout.numel() != 1 {
        let what = "Boolean value of Tensor with more than one value is ambiguous";
        return Err(Error::new(ErrorKind::Program, what));
    }
    // SAFETY: as promised by the caller.
    let view = unsafe { View::from_raw(d.base, d.dtype, &d.layout) };
    Ok(view.get(&PerDim::<i64>::from_elem(0, d.layout.rank())).as_bool())
}
