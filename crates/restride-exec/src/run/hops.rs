//! Higher-order calls: bodies run in the call's working memory, as `Frame` lays it out; meaning as in the interpreter.

use super::bound::Bound;
use super::code::{Code, CodeStep, HopStep};
use super::memory::Spot;
use super::steps::{Entry, Job, meet, number};
use crate::interp::nested_iteration;
use restride_ir::{Arg, Binding, CarryPlace, Error, ErrorKind, Graph, Hop, HopItem, Meta, Result, Scalar, Type};
use restride_kernels::support::convert::copy_convert;
use restride_tensor::{DType, Layout, PerDim, View, ViewMut};

/// Elements somewhere: cell 0 and how they lie.
#[derive(Clone)]
struct Data {
    base: *mut u8,
    dtype: DType,
    layout: Layout,
}

impl Data {
    fn of(spot: &Spot, bases: &[*mut u8]) -> Data {
        Data { base: bases[spot.buffer], dtype: spot.dtype, layout: spot.layout.clone() }
    }
    fn border(base: *mut u8, meta: &Meta) -> Data {
        Data { base, dtype: meta.dtype, layout: meta.layout.clone() }
    }
    fn first(&self) -> *mut u8 {
        self.base.wrapping_offset(self.layout.offset as isize * self.dtype.size() as isize)
    }
    /// One slice along dimension 0.
    fn slice(&self, i: i64) -> Data {
        let mut layout = self.layout.clone();
        layout.offset += i * layout.strides[0];
        layout.sizes.remove(0);
        layout.strides.remove(0);
        Data { layout, ..self.clone() }
    }
    /// # Safety
    /// Both are valid as far as their layouts reach, and apart.
    unsafe fn copy_to(&self, to: &Data) {
        // SAFETY: as promised by the caller.
        unsafe {
            copy_convert(
                View::from_raw(self.base, self.dtype, &self.layout),
                &ViewMut::from_raw(to.base, to.dtype, &to.layout),
            );
        }
    }
}

/// What a body is given or gives at one position.
#[derive(Clone)]
enum Item {
    Data(Data),
    Number(Scalar),
    None,
}

/// What a call works with, kept from call to call: the second one allocates nothing.
#[derive(Default)]
pub(super) struct Desk {
    /// What a loop carries, what it walks along, and what all iterations are given.
    carried: Vec<Item>,
    xs: Vec<Item>,
    rest: Vec<Item>,
    /// Of one call of a body: what it is given, where its outputs go, and the numbers among them.
    inputs: Vec<Item>,
    targets: Vec<Option<Data>>,
    numbers: Vec<Option<Scalar>>,
    bodies: Vec<Body>,
}

/// A body, bound when it first runs.
#[derive(Default)]
struct Body {
    bound: Option<Bound>,
    entries: Vec<Entry>,
    outputs: Vec<*mut u8>,
    bases: Vec<*mut u8>,
}

/// A call while it runs.
struct Running<'a> {
    code: &'a Code,
    step: &'a HopStep,
    scratch: *mut u8,
    reads: &'a [*mut u8],
}

impl Running<'_> {
    fn slot(&self, at: i64) -> *mut u8 {
        self.scratch.wrapping_add(at as usize)
    }
    /// Where a tensor that a loop carries is kept.
    fn kept(&self, k: usize) -> Option<Data> {
        let base = match (*self.step.frame.carried.get(k)?)? {
            CarryPlace::Slot(at) => self.slot(at),
            CarryPlace::Result => self.result(k)?.first(),
        };
        Some(Data::border(base, self.step.body_inputs.last()?[k].as_ref()?))
    }
    fn item(&self, item: &HopItem, symbols: &Binding) -> Result<Item> {
        Ok(match item {
            HopItem::Tensor { operand, .. } => match &self.step.reads[*operand] {
                Some(spot) => Item::Data(Data::of(spot, self.reads)),
                None => return Err(Error::invalid("an operand without a place")),
            },
            HopItem::Number(e) => Item::Number(number(e, symbols)?),
            HopItem::None => Item::None,
        })
    }
    fn items(&self, items: &[HopItem], symbols: &Binding, out: &mut Vec<Item>) -> Result<()> {
        out.clear();
        for item in items {
            out.push(self.item(item, symbols)?);
        }
        Ok(())
    }
    /// The place of a result.
    fn result(&self, k: usize) -> Option<Data> {
        self.step.writes[k].as_ref().map(|w| Data::of(w, self.reads))
    }
    fn results(&self) -> impl Iterator<Item = Option<Data>> {
        (0..self.step.writes.len()).map(|k| self.result(k))
    }
}

impl Job<'_> {
    /// # Safety
    /// As `Job::step`: all places and the scratch buffer are inside of what `bases` are the addresses of.
    #[allow(clippy::too_many_arguments)]
    pub(super) unsafe fn hop(
        &self,
        code: &Code,
        graph: &Graph,
        step: &CodeStep,
        hop: &HopStep,
        bases: &[*mut u8],
        symbols: &mut Binding,
        iteration: u64,
        desk: &mut Desk,
    ) -> Result<()> {
        let scratch = hop.scratch.map_or(std::ptr::NonNull::<u64>::dangling().as_ptr().cast(), |b| bases[b]);
        let run = Running { code, step: hop, scratch, reads: bases };
        // SAFETY: as promised by the caller.
        unsafe {
            match hop.call.hop {
                Hop::Cond => self.cond(&run, desk, symbols, iteration)?,
                Hop::WhileLoop => self.while_loop(&run, desk, symbols, iteration)?,
                Hop::Scan | Hop::Map => self.scan(&run, desk, symbols, iteration)?,
            }
        }
        let node = &graph.nodes[step.node.expect("a call is of a node")];
        for (r, n) in node.results.iter().zip(&desk.numbers) {
            if let (Type::Scalar(expr), Some(n)) = (&graph.values[*r].ty, n) {
                meet(expr, *n, symbols).map_err(|e| Error::invalid(format!("the number {e}")))?;
            }
        }
        Ok(())
    }

    /// # Safety
    /// As [`Job::hop`].
    unsafe fn cond(&self, run: &Running<'_>, desk: &mut Desk, symbols: &mut Binding, iteration: u64) -> Result<()> {
        let pred = run.step.call.pred.as_ref().ok_or_else(|| Error::invalid("cond has no predicate"))?;
        let taken = match run.item(pred, symbols)? {
            // SAFETY: as promised by the caller.
            Item::Data(d) => unsafe { truth(&d)? },
            Item::Number(s) => s.as_bool(),
            Item::None => return Err(Error::invalid("cond has no predicate")),
        };
        run.items(&run.step.call.rest, symbols, &mut desk.inputs)?;
        desk.targets.clear();
        desk.targets.extend(run.results());
        // SAFETY: as promised by the caller.
        unsafe { self.body(run, usize::from(!taken), desk, symbols, iteration) }
    }

    /// # Safety
    /// As [`Job::hop`].
    unsafe fn while_loop(
        &self,
        run: &Running<'_>,
        desk: &mut Desk,
        symbols: &mut Binding,
        iteration: u64,
    ) -> Result<()> {
        run.items(&run.step.call.rest, symbols, &mut desk.rest)?;
        // SAFETY: as promised by the caller; so below.
        unsafe { begin(run, symbols, &mut desk.carried)? };
        for i in 0u64.. {
            self.program.limits.check_trips(i)?;
            desk.inputs.clear();
            desk.inputs.extend(desk.carried.iter().chain(&desk.rest).cloned());
            desk.targets.clear();
            desk.targets.push(None);
            let within = nested_iteration(iteration, i);
            // SAFETY: as above.
            unsafe { self.body(run, 0, desk, symbols, within)? };
            let slot = run.step.frame.bodies[0].outputs.first().copied().flatten();
            let flag = run.step.body_outputs[0].first().and_then(Option::as_ref);
            let flag = flag.zip(slot).map(|(meta, at)| Data::border(run.slot(at), meta));
            let goes_on = match (flag, desk.numbers.first().copied().flatten()) {
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
            desk.targets.clear();
            // SAFETY: as above.
            unsafe { self.body(run, 1, desk, symbols, within)? };
            next(&mut desk.carried, &desk.numbers);
        }
        // SAFETY: as above.
        unsafe { end(run, desk) };
        Ok(())
    }

    /// # Safety
    /// As [`Job::hop`].
    unsafe fn scan(&self, run: &Running<'_>, desk: &mut Desk, symbols: &mut Binding, iteration: u64) -> Result<()> {
        let count = run.step.call.carried.len();
        run.items(&run.step.call.xs, symbols, &mut desk.xs)?;
        run.items(&run.step.call.rest, symbols, &mut desk.rest)?;
        // SAFETY: as promised by the caller; so below.
        unsafe { begin(run, symbols, &mut desk.carried)? };
        for i in 0..run.step.trips {
            let slices = desk.xs.iter().map(|x| match x {
                Item::Data(d) => Item::Data(d.slice(i)),
                other => other.clone(),
            });
            desk.inputs.clear();
            desk.inputs.extend(desk.carried.iter().cloned().chain(slices).chain(desk.rest.iter().cloned()));
            let slice = |(k, r): (usize, Option<Data>)| if k < count { None } else { r.map(|d| d.slice(i)) };
            desk.targets.clear();
            desk.targets.extend(run.results().enumerate().map(slice));
            let within = nested_iteration(iteration, i as u64);
            // SAFETY: as above.
            unsafe { self.body(run, 0, desk, symbols, within)? };
            next(&mut desk.carried, &desk.numbers);
        }
        // SAFETY: as above.
        unsafe { end(run, desk) };
        Ok(())
    }

    /// Runs one body once, on the desk's inputs: they are brought to where it expects them, outputs to the desk's targets. The
    /// numbers among its outputs are left on the desk.
    ///
    /// # Safety
    /// As [`Job::hop`]; inputs and targets are valid as far as their layouts reach and have the body's sizes.
    unsafe fn body(
        &self,
        run: &Running<'_>,
        b: usize,
        desk: &mut Desk,
        symbols: &mut Binding,
        iteration: u64,
    ) -> Result<()> {
        let id = run.step.call.bodies[b];
        let code = run.code.nested.get(&id).ok_or_else(|| Error::invalid("a body that was not placed"))?;
        let graph = &self.program.graphs[id];
        let slots = &run.step.frame.bodies[b];
        // A body's own symbols end with it.
        let mut own;
        let symbols = if code.numbers {
            own = symbols.clone();
            &mut own
        } else {
            symbols
        };
        desk.bodies.resize_with(desk.bodies.len().max(b + 1), Body::default);
        let Desk { inputs, targets, numbers, bodies, .. } = desk;
        let Body { bound, entries, outputs, bases } = &mut bodies[b];
        entries.clear();
        for (i, item) in inputs.iter().enumerate() {
            entries.push(match (item, &run.step.body_inputs[b][i]) {
                (Item::Data(d), Some(meta)) => Entry::Memory(match slots.inputs[i] {
                    None => d.first(),
                    Some(at) => {
                        let to = Data::border(run.slot(at), meta);
                        // SAFETY: the slot is part of the frame and holds the border layout; it is apart from all else.
                        unsafe { d.copy_to(&to) };
                        to.base
                    }
                }),
                (Item::Number(s), None) => {
                    if let Type::Scalar(expr) = &graph.values[graph.inputs[i]].ty {
                        meet(expr, *s, symbols).map_err(|e| Error::invalid(format!("input {i} of a body {e}")))?;
                    }
                    Entry::Nothing
                }
                (Item::None, None) => Entry::Nothing,
                _ => return Err(Error::invalid(format!("input {i} of a body is of another kind"))),
            });
        }
        outputs.clear();
        for (k, meta) in run.step.body_outputs[b].iter().enumerate() {
            outputs.push(match (meta, slots.outputs[k], targets.get(k)) {
                // What is carried is left where the input is.
                _ if k < run.step.call.replaced(b) => std::ptr::null_mut(),
                (None, ..) => std::ptr::null_mut(),
                (Some(_), Some(at), _) => run.slot(at),
                (Some(_), None, Some(Some(target))) => target.first(),
                _ => return Err(Error::invalid(format!("output {k} of a body has nowhere to go"))),
            });
        }
        let arena = run.slot(run.step.frame.arena);
        // SAFETY: the frame has room for the body's arena; border layouts are what the body was placed for. What is bound
        // lasts as long as the desk, which goes before the code; the addresses are told anew each time.
        unsafe {
            if self.poison {
                self.code(code, arena, entries, outputs, symbols, iteration)?;
            } else {
                code.bases_into(arena, entries, outputs, bases)?;
                if let Some(bound) = bound {
                    bound.rebase(code, bases);
                }
                let bound = match bound {
                    Some(bound) => bound,
                    None => bound.insert(Bound::new(code, graph, bases.clone(), symbols)?),
                };
                bound.run(self, code, graph, symbols, iteration)?;
            }
        }
        numbers.clear();
        for (k, arg) in graph.outputs.iter().enumerate() {
            if let (Some(meta), Some(at), Some(Some(target))) =
                (&run.step.body_outputs[b][k], slots.outputs[k], targets.get(k))
            {
                // SAFETY: the body wrote the slot, which is apart from all else.
                unsafe { Data::border(run.slot(at), meta).copy_to(target) };
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

/// What a loop carries into its first iteration, where it is kept.
///
/// # Safety
/// As [`Job::hop`].
unsafe fn begin(run: &Running<'_>, symbols: &Binding, carried: &mut Vec<Item>) -> Result<()> {
    run.items(&run.step.call.carried, symbols, carried)?;
    for (k, item) in carried.iter_mut().enumerate() {
        if let (Item::Data(d), Some(kept)) = (&*item, run.kept(k)) {
            // Where the result takes over the operand's memory, it is there.
            if d.first() != kept.first() {
                // SAFETY: what is kept is in the frame, or in a result that is apart from all operands but this one, which it
                // would lie on exactly; it is of the operand's sizes.
                unsafe { d.copy_to(&kept) };
            }
            *item = Item::Data(kept);
        }
    }
    Ok(())
}

/// What an iteration leaves to the next: tensors are where they were.
fn next(carried: &mut [Item], numbers: &[Option<Scalar>]) {
    for (item, number) in carried.iter_mut().zip(numbers) {
        match (&*item, number) {
            (Item::Data(_), _) => {}
            (_, Some(n)) => *item = Item::Number(*n),
            (_, None) => *item = Item::None,
        }
    }
}

/// What a loop carried is what it gives. Leaves the numbers on the desk.
///
/// # Safety
/// As [`Job::hop`].
unsafe fn end(run: &Running<'_>, desk: &mut Desk) {
    desk.numbers.clear();
    for (item, result) in desk.carried.iter().zip(run.results()) {
        if let (Item::Data(d), Some(result)) = (item, &result)
            && d.first() != result.first()
        {
            // SAFETY: what is kept elsewhere is in the frame, apart from the results, and of the result's sizes.
            unsafe { d.copy_to(result) };
        }
        desk.numbers.push(if let Item::Number(n) = item { Some(*n) } else { None });
    }
}

/// # Safety
/// The data is valid as far as its layout reaches.
unsafe fn truth(d: &Data) -> Result<bool> {
    if d.layout.numel() != 1 {
        let what = "Boolean value of Tensor with more than one value is ambiguous";
        return Err(Error::new(ErrorKind::Program, what));
    }
    // SAFETY: as promised by the caller.
    let view = unsafe { View::from_raw(d.base, d.dtype, &d.layout) };
    Ok(view.get(&PerDim::<i64>::from_elem(0, d.layout.rank())).as_bool())
}
