//! The step executor: steps bound to memory, and the one loop that runs them.
//!
//! Binding resolves what does not change from run to run, so a bound step is a call of its kernel with views that are ready.
//! An instance binds each step when it runs it, a session all steps once for many runs. A body of control flow is bound in its first iteration and moved
//! to other addresses where a later one needs it.

mod kernel;

use super::code::{Action, BufferRoot, Code, KernelStep};
use super::control_flow::BoundCall;
use super::fused::BoundFused;
use super::{ByteArena, RunCtx};
use crate::collective::{Flight, carry_out, engine, launch};
use restride_ir::{
    Arg, Args, Binding, Call, Ctx, Error, Exchange, Expr, Graph, NodeId, OpError, Program, Result, RngKey, Scalar,
};
use restride_kernels::support::convert::copy_convert;
use restride_kernels::support::scratch;
use restride_tensor::{Fitted, View, ViewMut};
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

/// How the steps run.
#[derive(Clone, Copy)]
pub(super) struct Mode {
    pub ctx: RunCtx,
    /// Spoil memory before its first and after its last use.
    pub poison: bool,
}

impl Mode {
    fn ctx(&self, node: u32, iteration: u64) -> Ctx {
        let rng = RngKey { seed: self.ctx.seed, call: self.ctx.call, node, iteration };
        Ctx { rng, threads: self.ctx.threads.max(1) }
    }
}

pub(super) fn number(e: &Expr, symbols: &Binding) -> Result<Scalar> {
    match e.constant() {
        Some(s) => Ok(s),
        None => e.eval(symbols).map_err(|why| Error::invalid(format!("{e}: {why}"))),
    }
}

impl Code {
    /// Writes the address of each buffer into `bases`.
    pub fn bases(
        &self,
        arena: *mut u8,
        inputs: &[Option<*mut u8>],
        outputs: &[*mut u8],
        bases: &mut Vec<*mut u8>,
    ) -> Result<()> {
        let aligned = |address: *mut u8, to: usize| {
            if (address as usize).is_multiple_of(to) {
                return Ok(address);
            }
            Err(Error::unsupported(format!("memory that is not aligned to {to} bytes is viewed as larger elements")))
        };
        bases.clear();
        for root in &self.roots {
            bases.push(match *root {
                BufferRoot::Arena { offset, .. } => arena.wrapping_add(offset),
                BufferRoot::Input(i) => {
                    let address = inputs[i].ok_or_else(|| Error::invalid("a tensor input has no memory"))?;
                    aligned(address, self.inputs[i].as_ref().map_or(1, |m| m.align))?
                }
                BufferRoot::Output(i) => aligned(outputs[i], self.output_align[i])?,
                BufferRoot::Idle => std::ptr::null_mut(),
            });
        }
        Ok(())
    }
}

/// A step with all that it needs to run.
enum BoundStep<'c> {
    Nothing,
    Move(View<'c>, ViewMut<'c>),
    Kernel(BoundKernel<'c>),
    /// A kernel whose numbers or results are known only when it runs: resolved by each run.
    Late(&'c KernelStep, NodeId),
    /// The wait for the exchange that a node starts.
    Wait(NodeId),
    ControlFlow(Box<BoundCall<'c>>),
    Fused(Box<BoundFused<'c>>),
}

/// What a bound kernel step does.
enum BoundWork {
    Kernel(fn(&Call<'_>) -> Result<(), OpError>),
    Exchange(Exchange, Option<NodeId>),
}

/// Exchanges that have started, by the nodes that started them. Dropping them, after an error, ends them.
#[derive(Default)]
pub(super) struct Flights(Vec<(NodeId, Flight)>);

impl Flights {
    /// Starts an exchange, or carries it out where its memory is not contiguous.
    ///
    /// # Safety
    /// The views' memory lives until the wait, and no one else writes the operand, or uses the result.
    unsafe fn start(&mut self, node: NodeId, exchange: &Exchange, x: View<'_>, out: &ViewMut<'_>) -> Result<()> {
        // SAFETY: as promised by the caller.
        if let Some(flight) = unsafe { launch(exchange, x, out)? } {
            self.0.push((node, flight));
        }
        Ok(())
    }

    /// Ends the exchanges of a run: none is left unless it failed, which the other ranks are told first.
    fn end(&mut self, done: &Result<()>) {
        if let (Err(e), false) = (done, self.0.is_empty()) {
            engine().abort(&e.to_string());
        }
        self.0.clear();
    }

    fn wait(&mut self, node: NodeId) -> Result<()> {
        match self.0.iter().position(|(n, _)| *n == node) {
            Some(k) => Ok(self.0.remove(k).1.wait()?),
            None => Ok(()),
        }
    }
}

struct BoundKernel<'c> {
    work: BoundWork,
    args: Vec<Arg<View<'c>, Scalar>>,
    outs: Vec<ViewMut<'c>>,
    /// Address and bytes.
    scratch: (*mut u8, usize),
    /// The node's number in the key of random draws.
    key: u32,
}

/// The steps of a graph, bound to the addresses of its buffers.
pub(super) struct BoundSteps<'c> {
    code: &'c Code,
    graph: &'c Graph,
    steps: Vec<BoundStep<'c>>,
    bases: Vec<*mut u8>,
    /// Per step, during a move to other addresses: whether it uses one of them.
    stale: Vec<bool>,
    flights: Flights,
    /// Memory of results that no step reads. The steps use it in turn.
    _spare: ByteArena,
}

impl<'c> BoundSteps<'c> {
    /// # Safety
    /// `bases` are the addresses of the code's buffers (`Code::bases`), valid as far as the code uses them: an arena of the
    /// plan's size, inputs over `CallerMemory::used`, outputs over their border layouts. They stay valid, and no one else uses
    /// them during [`BoundSteps::run`], for as long as this lives or until [`BoundSteps::rebase`] gives other addresses.
    pub unsafe fn new(
        program: &'c Program,
        code: &'c Code,
        bases: Vec<*mut u8>,
        symbols: &Binding,
    ) -> Result<BoundSteps<'c>> {
        let graph = &program.graphs[code.graph];
        let mut spare = ByteArena::default();
        let unread = spare.reserve(code.spare_bytes)?;
        // SAFETY: as promised by the caller; the spare memory is kept beside the steps.
        let step = |at| unsafe { BoundStep::new(program, code, at, &bases, unread, symbols) };
        let steps = (0..code.steps.len()).map(|at| step(at).map_err(|e| blame(code, graph, at, e)));
        let steps = steps.collect::<Result<Vec<_>>>()?;
        let stale = vec![false; code.steps.len()];
        Ok(BoundSteps { code, graph, steps, bases, stale, flights: Flights::default(), _spare: spare })
    }

    /// Moves the steps to other addresses of the same buffers.
    ///
    /// # Safety
    /// As [`BoundSteps::new`].
    pub unsafe fn rebase(&mut self, bases: &[*mut u8]) {
        for (buffer, &base) in bases.iter().enumerate() {
            if self.bases[buffer] == base {
                continue;
            }
            self.bases[buffer] = base;
            self.code.uses[buffer].iter().for_each(|at| self.stale[*at] = true);
        }
        for (at, stale) in self.stale.iter_mut().enumerate().filter(|(_, stale)| **stale) {
            *stale = false;
            // SAFETY: as promised by the caller.
            unsafe { self.steps[at].rebase(&self.code.steps[at].action, &self.bases) };
        }
    }

    /// Runs the steps.
    ///
    /// # Safety
    /// As [`BoundSteps::new`].
    pub unsafe fn run(&mut self, mode: Mode, symbols: &mut Binding, iteration: u64) -> Result<()> {
        let BoundSteps { code, graph, steps, bases, flights, .. } = self;
        // SAFETY: as promised by the caller.
        let done = unsafe {
            each_step(code, graph, bases, mode.poison, |at| {
                steps[at].run(graph, bases, mode, symbols, iteration, flights)
            })
        };
        flights.end(&done);
        done
    }

    /// Runs the steps and replaces `times` by the time of each.
    ///
    /// # Safety
    /// As [`BoundSteps::new`].
    pub unsafe fn run_timed(
        &mut self,
        mode: Mode,
        symbols: &mut Binding,
        iteration: u64,
        times: &mut Vec<Duration>,
    ) -> Result<()> {
        let BoundSteps { code, graph, steps, bases, flights, .. } = self;
        times.clear();
        // SAFETY: as promised by the caller.
        let done = unsafe {
            each_step(code, graph, bases, mode.poison, |at| {
                let start = Instant::now();
                let done = steps[at].run(graph, bases, mode, symbols, iteration, flights);
                times.push(start.elapsed());
                done
            })
        };
        flights.end(&done);
        done
    }

    /// Binds each step, runs it and drops it: for one run, without the memory of all bound steps.
    ///
    /// # Safety
    /// As [`BoundSteps::new`].
    pub unsafe fn run_once(
        program: &'c Program,
        code: &'c Code,
        bases: &[*mut u8],
        mode: Mode,
        symbols: &mut Binding,
        iteration: u64,
    ) -> Result<()> {
        let graph = &program.graphs[code.graph];
        let mut spare = ByteArena::default();
        let unread = spare.reserve(code.spare_bytes)?;
        // Dropped before the memory that its exchanges use.
        let mut flights = Flights::default();
        // SAFETY: as promised by the caller; the spare memory lives until the last step has run.
        let done = unsafe {
            each_step(code, graph, bases, mode.poison, |at| {
                let mut step = BoundStep::new(program, code, at, bases, unread, symbols)?;
                step.run(graph, bases, mode, symbols, iteration, &mut flights)
            })
        };
        flights.end(&done);
        done
    }
}

/// Runs `step` for each position, between spoiling memory where asked.
///
/// # Safety
/// `bases` are the addresses of the code's buffers, whose memory may be written.
#[inline]
unsafe fn each_step(
    code: &Code,
    graph: &Graph,
    bases: &[*mut u8],
    poison: bool,
    mut step: impl FnMut(usize) -> Result<()>,
) -> Result<()> {
    for at in 0..code.steps.len() {
        if poison {
            // SAFETY: these are parts of the arena; a buffer holds nothing before its first use.
            unsafe { spoil(code, bases, &code.births[at]) };
        }
        step(at).map_err(|e| blame(code, graph, at, e))?;
        if poison {
            // SAFETY: as above; nor does it after its last.
            unsafe { spoil(code, bases, &code.deaths[at]) };
        }
    }
    Ok(())
}

/// The error of a step, with its node.
fn blame(code: &Code, graph: &Graph, at: usize, e: Error) -> Error {
    match code.steps[at].node {
        Some(node) => e.at(graph, node),
        None => e,
    }
}

impl<'c> BoundStep<'c> {
    /// # Safety
    /// As [`BoundSteps::new`]; `unread` has the code's spare bytes, which live as long as the step.
    unsafe fn new(
        program: &'c Program,
        code: &'c Code,
        at: usize,
        bases: &[*mut u8],
        unread: *mut u8,
        symbols: &Binding,
    ) -> Result<BoundStep<'c>> {
        let (graph, step) = (&program.graphs[code.graph], &code.steps[at]);
        Ok(match &step.action {
            Action::Nothing => BoundStep::Nothing,
            Action::Wait(node) => BoundStep::Wait(*node),
            Action::Move(places) => {
                let (from, to) = &**places;
                // SAFETY: the code proved its places inside their buffers, which are valid as the caller promises.
                unsafe { BoundStep::Move(from.view(bases), to.view_mut(bases)) }
            }
            Action::Kernel(kernel) => {
                let node = step.node.expect("a kernel is of a node");
                let key = graph.nodes[node].origin.key;
                // SAFETY: as above.
                match unsafe { kernel.bind(bases, unread, symbols, key)? } {
                    Some(bound) => BoundStep::Kernel(bound),
                    None => BoundStep::Late(kernel, node),
                }
            }
            Action::ControlFlow(call) => {
                let node = &graph.nodes[step.node.expect("a call is of a node")];
                BoundStep::ControlFlow(Box::new(BoundCall::new(program, code, call, graph, node)))
            }
            Action::Fused(fused) => {
                // SAFETY: as above.
                BoundStep::Fused(Box::new(unsafe { BoundFused::new(fused, bases) }))
            }
        })
    }

    /// # Safety
    /// As [`BoundSteps::new`], `bases` being the addresses that the step is bound to.
    #[inline]
    unsafe fn run(
        &mut self,
        graph: &Graph,
        bases: &[*mut u8],
        mode: Mode,
        symbols: &mut Binding,
        iteration: u64,
        flights: &mut Flights,
    ) -> Result<()> {
        match self {
            BoundStep::Wait(node) => flights.wait(*node),
            BoundStep::Nothing => Ok(()),
            // Moves overlap cell for cell only (a checker saw to it); the copy goes through raw pointers, so that even
            // otherwise it only gives wrong values.
            BoundStep::Move(from, to) => {
                copy_convert(*from, to);
                Ok(())
            }
            BoundStep::Kernel(BoundKernel {
                work: BoundWork::Exchange(exchange, starts), args, outs, scratch, ..
            }) => {
                let x = *Args(args).tensor(0)?;
                // SAFETY: the step's own part of the arena; a checker saw to it that no step uses memory of an exchange until the
                // step that waits for it.
                unsafe {
                    with_scratch(scratch.0, scratch.1, || match starts {
                        Some(node) => flights.start(*node, exchange, x, &outs[0]),
                        None => Ok(carry_out(exchange, x, &outs[0])?),
                    })
                }
            }
            BoundStep::Kernel(BoundKernel { work: BoundWork::Kernel(run), args, outs, scratch, key }) => {
                let ctx = mode.ctx(*key, iteration);
                // SAFETY: the code holds declared types against the shape rule; where places may meet, a checker saw to it.
                let fitted = unsafe { Fitted::promise() };
                let call = Call { args: Args(args), outs, ctx: &ctx, fitted };
                // SAFETY: the step's own part of the arena.
                Ok(unsafe { with_scratch(scratch.0, scratch.1, || run(&call)) }?)
            }
            // SAFETY: as promised by the caller.
            BoundStep::Late(kernel, node) => unsafe { kernel.run_late(graph, *node, bases, mode, symbols, iteration) },
            // SAFETY: as promised by the caller.
            BoundStep::ControlFlow(call) => unsafe { call.run(bases, mode, symbols, iteration) },
            // SAFETY: the code proved its places inside their buffers, which are valid as the caller promises; where they may
            // meet, a checker saw to it.
            BoundStep::Fused(fused) => Ok(unsafe { fused.run(&mode.ctx(0, iteration)) }?),
        }
    }

    /// Remakes the views on buffers that moved.
    ///
    /// # Safety
    /// As [`BoundSteps::new`]; the action is the one that this was made of.
    unsafe fn rebase(&mut self, action: &'c Action, bases: &[*mut u8]) {
        match (self, action) {
            // SAFETY: as promised by the caller.
            (BoundStep::Move(from, to), Action::Move(places)) => unsafe {
                (*from, *to) = (places.0.view(bases), places.1.view_mut(bases));
            },
            (BoundStep::Kernel(bound), Action::Kernel(kernel)) => {
                let reread = |view: &mut View<'c>, operand: usize| {
                    if let Some(place) = &kernel.reads[operand] {
                        // SAFETY: as promised by the caller.
                        *view = unsafe { place.view(bases) };
                    }
                };
                for (arg, spec) in bound.args.iter_mut().zip(&kernel.args) {
                    match (arg, spec) {
                        (Arg::Value(v), Arg::Value(k)) => reread(v, *k),
                        (Arg::Values(vs), Arg::Values(ks)) => {
                            let both = vs.iter_mut().zip(ks).filter_map(|(v, k)| Some((v.as_mut()?, (*k)?)));
                            both.for_each(|(v, k)| reread(v, k));
                        }
                        _ => {}
                    }
                }
                for (out, write) in bound.outs.iter_mut().zip(&kernel.writes) {
                    if let Some(place) = write {
                        // SAFETY: as promised by the caller.
                        *out = unsafe { place.view_mut(bases) };
                    }
                }
                if let Some((buffer, _)) = kernel.scratch {
                    bound.scratch.0 = bases[buffer];
                }
            }
            // SAFETY: as promised by the caller.
            (BoundStep::Fused(bound), Action::Fused(_)) => unsafe { bound.rebase(bases) },
            _ => {}
        }
    }
}

/// Calls a kernel with its scratch memory, if it has some.
///
/// # Safety
/// The bytes are valid, and used by this call only.
pub(super) unsafe fn with_scratch<R>(at: *mut u8, bytes: usize, call: impl FnOnce() -> R) -> R {
    if bytes == 0 {
        return call();
    }
    // SAFETY: as promised by the caller.
    let memory = unsafe { std::slice::from_raw_parts_mut(at.cast::<MaybeUninit<u8>>(), bytes) };
    scratch::with(memory, call)
}

/// Fills parts of arena buffers with NaN bytes.
///
/// # Safety
/// `bases` are the addresses of the code's buffers, whose memory may be written.
unsafe fn spoil(code: &Code, bases: &[*mut u8], parts: &[(usize, std::ops::Range<usize>)]) {
    for (b, part) in parts {
        if let BufferRoot::Arena { bytes, .. } = code.roots[*b] {
            let part = part.start.min(bytes)..part.end.min(bytes);
            // SAFETY: as promised by the caller; the part is inside of the buffer.
            unsafe { bases[*b].add(part.start).write_bytes(0xFF, part.len()) };
        }
    }
}
