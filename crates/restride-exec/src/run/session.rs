//! Runs on memory that stays where it is: what does not change from run to run is done once.
//!
//! Inputs, outputs and arena are bound when the session is made; a step is then a call of its kernel with views that are
//! ready. A run allocates nothing but what kernels do whose working memory is not declared. Steps that need more than that (bodies, numbers that are learnt) are
//! run as [`super::Runnable::run`] runs them.

use super::bound::Bound;
use super::locks::{Locks, Name};
use super::steps::{Entry, Job};
use super::{Arena, RunCtx, Runnable};
use crate::inputs::RunValue;
use restride_ir::{Binding, Result};
use restride_kernels::support::threads::within;
use restride_tensor::RawTensor;
use std::sync::Arc;

/// A runnable bound to inputs, outputs and an arena.
pub struct Session {
    /// Taken by each run.
    locks: Locks,
    // The views in here point into the runnable and to the memory below, all of which is kept as long as they are.
    bound: Bound,
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
        given: &[Option<RawTensor>],
    ) -> Result<Session> {
        let mut symbols = Binding::new();
        let results = runnable.results_in(&inputs, given)?;
        let mut locks = runnable.locks(&inputs);
        for (i, t) in results.iter().enumerate().filter_map(|(i, r)| Some((i, r.tensor()?))) {
            locks.add(t, true, Name::Output(i));
        }
        let taken = locks.first(&|name| runnable.name(name))?;
        let entries = runnable.entries(&inputs, &mut symbols)?;
        let addresses: Vec<*mut u8> = results.iter().map(address).collect();
        let base = arena.reserve(runnable.arena_bytes)?;
        let bases = runnable.code.bases(base, &entries, &addresses)?;
        let graph = &runnable.program.graphs[runnable.code.graph];
        // SAFETY: the runnable, whose steps never change, the arena, the inputs and the results are kept beside the views, and
        // were fitted to what the code reads and writes.
        let bound = unsafe { Bound::new(&runnable.code, graph, bases, &symbols)? };
        drop(taken);
        Ok(Session { locks, bound, entries, addresses, runnable, arena, inputs, results, symbols })
    }

    /// Runs once, without an allocation where kernels are given their working memory. What was in the inputs' memory is read, what was in the results' is replaced.
    ///
    /// # Errors
    /// An input or an output whose memory has moved since the session was made (it was resized), or that somebody else uses
    /// now: nothing is written then. A kernel's own error, with the node.
    pub fn run(&mut self, ctx: RunCtx) -> Result<()> {
        let pool = self.arena.pool(ctx.threads)?;
        let Session { locks, runnable, .. } = self;
        let locks = std::mem::take(locks);
        let done = match locks.again(&|name| runnable.name(name)) {
            Ok(_taken) => within(pool.as_deref(), || self.run_steps(ctx)),
            Err(e) => Err(e),
        };
        self.locks = locks;
        done
    }

    fn run_steps(&mut self, ctx: RunCtx) -> Result<()> {
        let code = &self.runnable.code;
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
        // SAFETY: as above.
        unsafe { self.bound.run(&job, code, graph, &mut self.symbols, ctx.iteration) }
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

// SAFETY: the addresses in here lead to the arena, to the inputs' and results' storages and into the runnable. All of them are
// kept by the session, and may be used on any thread; a run locks the storages.
unsafe impl Send for Session {}

/// Where a result begins.
pub(super) fn address(result: &RunValue) -> *mut u8 {
    result.tensor().map_or(std::ptr::null_mut(), |t| {
        let cells = t.layout().offset as isize * t.dtype().size() as isize;
        t.storage().address().wrapping_offset(cells)
    })
}
