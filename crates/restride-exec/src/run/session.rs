//! Runs on memory that stays where it is: what does not change from run to run is done once.
//!
//! Inputs, outputs and arena are bound when the session is made; a step is then a call of its kernel with views that are
//! ready. A run allocates nothing but what kernels do whose working memory is not declared. Steps that need more than that (bodies, numbers that are learnt) are
//! run as [`super::Runnable::run`] runs them.

use super::code::{Compute, KernelStep, What};
use super::memory::Spot;
use super::steps::{Entry, Job, with_scratch};
use super::{Arena, RunCtx, Runnable};
use crate::inputs::RunValue;
use restride_ir::{Arg, Args, Binding, Call, Ctx, Error, ErrorKind, NodeId, OpError, Result, RngKey, Scalar};
use restride_kernels::convert::copy_convert;
use restride_kernels::threads::within;
use restride_tensor::{Tensor, View, ViewMut};
use std::sync::Arc;

/// A step with all that it takes.
enum Ready {
    Nothing,
    Move(View<'static>, ViewMut<'static>),
    Kernel {
        run: fn(&Call<'_>) -> Result<(), OpError>,
        args: Vec<Arg<View<'static>, Scalar>>,
        outs: Vec<ViewMut<'static>>,
        /// Working memory.
        scratch: (*mut u8, usize),
        /// Memory of results that nobody wants.
        _spare: Vec<Option<Tensor>>,
        node: NodeId,
        key: u32,
    },
    /// As the runnable does it.
    Other,
}

/// A runnable bound to inputs, outputs and an arena.
pub struct Session {
    // The views in here point into the runnable and to the memory below, all of which is kept as long as they are.
    steps: Vec<Ready>,
    bases: Vec<*mut u8>,
    entries: Vec<Entry>,
    addresses: Vec<*mut u8>,
    runnable: Arc<Runnable>,
    arena: Arena,
    inputs: Vec<RunValue>,
    results: Vec<RunValue>,
    symbols: Binding,
}

impl Session {
    /// Binds a runnable to memory. `given` are tensors for graph outputs, by position, of the outputs' types and strides; the
    /// others get fresh memory.
    ///
    /// # Errors
    /// Inputs or outputs that the program was not placed for, or outputs in memory that something else is in.
    pub fn new(
        runnable: Arc<Runnable>,
        mut arena: Arena,
        inputs: Vec<RunValue>,
        given: &[Option<Tensor>],
    ) -> Result<Session> {
        let mut symbols = Binding::new();
        let entries = runnable.entries(&inputs, &mut symbols)?;
        let results = runnable.results_in(&inputs, given)?;
        let addresses: Vec<*mut u8> = results.iter().map(address).collect();
        let base = arena.reserve(runnable.arena_bytes)?;
        let bases = runnable.code.bases(base, &entries, &addresses)?;
        let graph = &runnable.program.graphs[runnable.code.graph];
        let mut steps = Vec::with_capacity(runnable.code.steps.len());
        for step in &runnable.code.steps {
            steps.push(match &step.what {
                What::Nothing => Ready::Nothing,
                // SAFETY: the places were proved to be inside of their buffers. They and the runnable, whose steps never
                // change, are kept as long as the views.
                What::Move(places) => unsafe {
                    let (from, to): &'static (Spot, Spot) = &*std::ptr::from_ref(&**places);
                    Ready::Move(from.view(&bases), to.view_mut(&bases))
                },
                What::Kernel(kernel) => {
                    let node = step.node.expect("a kernel is of a node");
                    let key = graph.nodes[node].origin.key;
                    // SAFETY: as above.
                    unsafe { ready(&*std::ptr::from_ref(&**kernel), &bases, &symbols, node, key) }
                        .map_err(|e| e.at(graph, node))?
                }
                What::Hop(_) => Ready::Other,
            });
        }
        Ok(Session { steps, bases, entries, addresses, runnable, arena, inputs, results, symbols })
    }

    /// Runs once, without an allocation where kernels are given their working memory. What was in the inputs' memory is read, what was in the results' is replaced.
    ///
    /// # Errors
    /// An input whose memory has moved since the session was made (it was resized). A kernel's own error, with the node.
    pub fn run(&mut self, ctx: RunCtx) -> Result<()> {
        let pool = self.arena.pool(ctx.threads)?;
        within(pool.as_deref(), || self.run_steps(ctx))
    }

    fn run_steps(&mut self, ctx: RunCtx) -> Result<()> {
        let code = &self.runnable.code;
        for ((value, entry), memory) in self.inputs.iter().zip(&self.entries).zip(&code.inputs) {
            if let (RunValue::Tensor(t), Entry::Memory(there), Some(memory)) = (value, entry, memory)
                && memory.bind(t).ok() != Some(*there)
            {
                return Err(Error::new(ErrorKind::Inputs, "an input was resized since the session was made")
                    .help("make a new session for it"));
            }
        }
        let job = Job { program: &self.runnable.program, ctx, poison: self.runnable.poison };
        if job.poison {
            // SAFETY: arena, inputs and results are those that the code was bound to, and nobody else has the session.
            unsafe {
                let base = self.arena.reserve(self.runnable.arena_bytes)?;
                self.runnable.spoil(base, &self.results);
                return job.code(code, base, &self.entries, &self.addresses, &mut self.symbols, ctx.iteration);
            }
        }
        let graph = &self.runnable.program.graphs[code.graph];
        for (ready, step) in self.steps.iter().zip(&code.steps) {
            match ready {
                Ready::Nothing => {}
                Ready::Move(from, to) => copy_convert(*from, *to),
                Ready::Kernel { run, args, outs, scratch, node, key, .. } => {
                    let rng = RngKey { seed: ctx.seed, call: ctx.call, node: *key, iteration: ctx.iteration };
                    let ctx = Ctx { rng, threads: ctx.threads.max(1) };
                    let call = Call { args: Args(args), outs, ctx: &ctx };
                    // SAFETY: the step's own part of the arena.
                    let done = unsafe { with_scratch(scratch.0, scratch.1, || run(&call)) };
                    done.map_err(|e| Error::from(e).at(graph, *node))?;
                }
                // SAFETY: as above.
                Ready::Other => unsafe {
                    job.step(code, graph, step, &self.bases, &mut self.symbols, ctx.iteration)
                        .map_err(|e| step.node.map_or(e.clone(), |n| e.at(graph, n)))?;
                },
            }
        }
        Ok(())
    }

    /// One value per graph output, in the same memory after each run; see [`Runnable::run`].
    ///
    /// # Errors
    /// A number that the run did not tell.
    pub fn results(&self) -> Result<Vec<RunValue>> {
        self.runnable.numbers(&self.inputs, self.results.clone(), &self.symbols)
    }

    /// The inputs.
    pub fn inputs(&self) -> &[RunValue] {
        &self.inputs
    }

    /// The arena, of a session that is needed no more.
    pub fn into_arena(self) -> Arena {
        self.arena
    }
}

/// Where a result begins.
pub(super) fn address(result: &RunValue) -> *mut u8 {
    result.tensor().map_or(std::ptr::null_mut(), |t| {
        let cells = t.layout().offset as isize * t.dtype().size() as isize;
        t.storage().ptr_mut().wrapping_offset(cells)
    })
}

/// A step's call, with views on the memory at `bases`.
///
/// # Safety
/// The memory lives as long as what is returned.
unsafe fn ready(
    kernel: &'static KernelStep,
    bases: &[*mut u8],
    symbols: &Binding,
    node: NodeId,
    key: u32,
) -> Result<Ready> {
    let Compute::Fixed(run) = kernel.compute else { return Ok(Ready::Other) };
    if kernel.late {
        return Ok(Ready::Other);
    }
    let spare = kernel.spare()?;
    // SAFETY: as promised by the caller; the spare memory's list is kept beside the views, and never changes.
    unsafe {
        let kept: &'static [Option<Tensor>] = &*std::ptr::from_ref(spare.as_slice());
        let (args, outs) = (kernel.operands(bases, symbols)?, kernel.targets(bases, kept)?);
        let scratch = kernel.scratch.map_or((std::ptr::null_mut(), 0), |(b, bytes)| (bases[b], bytes));
        Ok(Ready::Kernel { run, args, outs, scratch, _spare: spare, node, key })
    }
}
