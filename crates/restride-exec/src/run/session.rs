//! Runs on memory that stays where it is.

use super::locks::{Locks, Name};
use super::memory::CallerMemory;
use super::steps::BoundSteps;
use super::{ByteArena, RunCtx, Runnable};
use crate::addresses::Addresses;
use crate::inputs::RunValue;
use restride_ir::{Binding, Error, Result};
use restride_kernels::support::threads::within;
use restride_tensor::RawTensor;
use std::sync::Arc;
use std::time::Duration;

/// A runnable bound once to inputs, outputs and an arena, for many runs. A run allocates nothing but the scratch of kernels that
/// do not declare it.
pub struct BoundRun {
    /// Taken by each run.
    locks: Locks,
    // The views in here point into the runnable and to the memory below, which live as long.
    steps: BoundSteps<'static>,
    runnable: Arc<Runnable>,
    arena: ByteArena,
    inputs: Vec<RunValue>,
    results: Vec<RunValue>,
    symbols: Binding,
    /// Where the steps are instead, after [`BoundRun::run_at`].
    elsewhere: Option<Elsewhere>,
}

/// Addresses that steps were moved to, and locks on the memory that stays.
struct Elsewhere {
    locks: Locks,
    /// Positions of the inputs and outputs that are not where they were bound.
    given: (Vec<usize>, Vec<usize>),
    /// By position among the graph's inputs and outputs.
    inputs: Vec<Option<*mut u8>>,
    outputs: Vec<*mut u8>,
    bases: Vec<*mut u8>,
}

impl Elsewhere {
    /// Whether these addresses are of the same positions.
    fn of(&self, at: &Addresses) -> bool {
        let same = |have: &[usize], all: &[(usize, *mut u8)]| all.iter().map(|(i, _)| i).eq(have);
        same(&self.given.0, &at.inputs) && same(&self.given.1, &at.outputs)
    }
}

impl BoundRun {
    /// Binds a runnable to memory. `given` are tensors for graph outputs, by position, of the outputs' types and strides; the
    /// others get fresh memory.
    ///
    /// # Errors
    /// Inputs or outputs that the program was not placed for, or outputs in memory that something else is in.
    pub fn new(
        runnable: Arc<Runnable>,
        mut arena: ByteArena,
        inputs: Vec<RunValue>,
        given: Vec<Option<RawTensor>>,
    ) -> Result<BoundRun> {
        let results = runnable.results_in(&inputs, given)?;
        let (locks, steps, symbols) = bound(&runnable, &mut arena, &inputs, &results)?;
        Ok(BoundRun { locks, steps, runnable, arena, inputs, results, symbols, elsewhere: None })
    }

    /// Binds other inputs, with the same results.
    ///
    /// # Errors
    /// As [`BoundRun::new`]; then everything is as before.
    pub fn rebind(&mut self, inputs: Vec<RunValue>) -> Result<()> {
        let (locks, steps, symbols) = bound(&self.runnable, &mut self.arena, &inputs, &self.results)?;
        (self.locks, self.steps, self.symbols, self.inputs) = (locks, steps, symbols, inputs);
        self.elsewhere = None;
        Ok(())
    }

    /// Moves the steps to other results, and to other inputs at some positions, all of the same types, without binding each anew.
    ///
    /// # Errors
    /// As [`BoundRun::new`]; then the run is as before.
    pub fn rebase(&mut self, mut changed: Vec<(usize, RunValue)>, given: Vec<Option<RawTensor>>) -> Result<()> {
        self.exchange(&mut changed);
        let done = self.follow(given);
        if done.is_err() {
            self.exchange(&mut changed);
        }
        done
    }

    /// Exchanges inputs.
    fn exchange(&mut self, with: &mut [(usize, RunValue)]) {
        with.iter_mut().for_each(|(i, value)| std::mem::swap(&mut self.inputs[*i], value));
    }

    /// Moves the steps to the inputs as they are now, and to other results.
    fn follow(&mut self, given: Vec<Option<RawTensor>>) -> Result<()> {
        let BoundRun { runnable, arena, steps, inputs, .. } = self;
        let results = runnable.results_in(inputs, given)?;
        let mut locks = all_locks(runnable, inputs, &results);
        let mut symbols = Binding::new();
        let taken = locks.first(&|name| runnable.name(name))?;
        let bases = runnable.bases(arena, inputs, &results, &mut symbols)?;
        // SAFETY: the arena is the one that the steps are bound to, inputs were fitted to the bytes that the code uses, and results have
        // its border layouts; all are kept beside the steps. Their storages are locked here and by each run.
        unsafe { steps.rebase(&bases) };
        drop(taken);
        (self.locks, self.results, self.symbols) = (locks, results, symbols);
        self.elsewhere = None;
        Ok(())
    }

    /// Runs once with some inputs and outputs elsewhere; the others stay where they are. Memory at addresses is not locked. The next
    /// [`BoundRun::run`] is in the memory of before. An input that is written must not meet others: [`Addresses::check_sharing`].
    ///
    /// # Errors
    /// As [`BoundRun::run`]; a position that the graph does not have, an address that is not aligned as the steps need.
    pub fn run_at(&mut self, at: &Addresses, ctx: RunCtx) -> Result<()> {
        let inside = |all: &[(usize, *mut u8)], count: usize| all.iter().all(|(i, _)| *i < count);
        if !inside(&at.inputs, self.inputs.len()) || !inside(&at.outputs, self.results.len()) {
            return Err(Error::invalid("an address of an input or output that the graph does not have"));
        }
        if self.elsewhere.as_ref().is_none_or(|before| !before.of(at)) {
            self.elsewhere = Some(self.leave(at)?);
        }
        let BoundRun { steps, runnable, arena, symbols, elsewhere, .. } = self;
        let elsewhere = elsewhere.as_mut().expect("it is set above");
        for (i, first) in &at.inputs {
            let memory = runnable.code.inputs[*i].as_ref();
            let below = |m: &CallerMemory| m.ty.layout.offset as isize * m.ty.dtype.size() as isize;
            elsewhere.inputs[*i] = memory.map(|m| first.wrapping_offset(-below(m)));
        }
        for (i, first) in &at.outputs {
            elsewhere.outputs[*i] = *first;
        }
        let pool = arena.pool(ctx.threads)?;
        let Elsewhere { locks, inputs, outputs, bases, .. } = elsewhere;
        let _taken = locks.again(&|name| runnable.name(name))?;
        runnable.code.bases(arena.reserve(runnable.arena_bytes)?, inputs, outputs, bases)?;
        // SAFETY: the arena is the one that the steps are bound to. What is not given is where it was bound, and locked; `Addresses`
        // promises the rest.
        within(pool.as_deref(), || unsafe {
            steps.rebase(bases);
            runnable.run_steps(steps, arena, &[], ctx, symbols, None)
        })
    }

    /// The addresses of the inputs and results, and locks on those that are not given.
    fn leave(&self, at: &Addresses) -> Result<Elsewhere> {
        let BoundRun { runnable, inputs, results, .. } = self;
        let (mut kept, mut made) = (inputs.clone(), results.clone());
        at.inputs.iter().for_each(|(i, _)| kept[*i] = RunValue::None);
        at.outputs.iter().for_each(|(i, _)| made[*i] = RunValue::None);
        let mut locks = all_locks(runnable, &kept, &made);
        drop(locks.first(&|name| runnable.name(name))?);
        Ok(Elsewhere {
            locks,
            given: (at.inputs.iter().map(|i| i.0).collect(), at.outputs.iter().map(|o| o.0).collect()),
            inputs: runnable.addresses(inputs, &mut Binding::new())?,
            outputs: results.iter().map(address).collect(),
            bases: Vec::new(),
        })
    }

    /// Runs once: reads the inputs' memory and replaces the contents of the results'.
    ///
    /// # Errors
    /// An input or an output whose memory was resized since the session was made, or that is in use elsewhere: nothing is
    /// written then. A kernel's own error, with the node.
    pub fn run(&mut self, ctx: RunCtx) -> Result<()> {
        self.run_with(ctx, None)
    }

    /// Runs once, and replaces `times` by the time of each step of the placement.
    ///
    /// # Errors
    /// As [`BoundRun::run`].
    pub fn run_timed(&mut self, ctx: RunCtx, times: &mut Vec<Duration>) -> Result<()> {
        self.run_with(ctx, Some(times))
    }

    fn run_with(&mut self, ctx: RunCtx, times: Option<&mut Vec<Duration>>) -> Result<()> {
        if self.elsewhere.is_some() {
            self.follow(self.results.iter().map(|r| r.tensor().cloned()).collect())?;
        }
        let BoundRun { locks, steps, runnable, arena, results, symbols, .. } = self;
        let pool = arena.pool(ctx.threads)?;
        let _taken = locks.again(&|name| runnable.name(name))?;
        // SAFETY: bound to this memory, whose storages are locked and where they were; no one else has the session.
        within(pool.as_deref(), || unsafe { runnable.run_steps(steps, arena, results, ctx, symbols, times) })
    }

    /// One value per graph output, in the same memory after each run; see [`Runnable::run`].
    ///
    /// # Errors
    /// A number that no run has learnt.
    pub fn results(&self) -> Result<Vec<RunValue>> {
        self.runnable.numbers(&self.inputs, self.results.clone(), &self.symbols)
    }

    /// The memory of a graph output, if it has some of its own.
    pub fn memory(&self, output: usize) -> Option<&RawTensor> {
        self.results.get(output).and_then(RunValue::tensor)
    }

    /// The first element of a graph output in fresh memory, if it has memory of its own.
    pub fn fresh_offset(&self, output: usize) -> Option<i64> {
        Some(self.runnable.code.outputs.get(output)?.as_ref()?.layout.offset)
    }

    /// The inputs.
    pub fn inputs(&self) -> &[RunValue] {
        &self.inputs
    }

    /// Ends the session and returns its arena.
    pub fn into_arena(self) -> ByteArena {
        self.arena
    }
}

/// The locks of a runnable's memory.
fn all_locks(runnable: &Runnable, inputs: &[RunValue], results: &[RunValue]) -> Locks {
    let mut locks = runnable.locks(inputs);
    for (i, t) in results.iter().enumerate().filter_map(|(i, r)| Some((i, r.tensor()?))) {
        locks.add(t, true, Name::Output(i));
    }
    locks
}

/// The locks of a runnable's memory, and its steps bound to it. The memory is to be kept as long as the steps.
fn bound(
    runnable: &Arc<Runnable>,
    arena: &mut ByteArena,
    inputs: &[RunValue],
    results: &[RunValue],
) -> Result<(Locks, BoundSteps<'static>, Binding)> {
    let mut symbols = Binding::new();
    let mut locks = all_locks(runnable, inputs, results);
    let taken = locks.first(&|name| runnable.name(name))?;
    // SAFETY: the runnable, which never changes, the arena, the inputs and the results are kept beside the steps; the storages are
    // locked here and by each run.
    let steps = unsafe {
        let lasting: &'static Runnable = &*Arc::as_ptr(runnable);
        lasting.bind(arena, inputs, results, &mut symbols)?
    };
    drop(taken);
    Ok((locks, steps, symbols))
}

// SAFETY: the addresses in here lead to the arena, to the inputs' and results' storages and into the runnable. All of them are
// kept by the session, and may be used on any thread; a run locks the storages.
unsafe impl Send for BoundRun {}

/// Where a result begins.
pub(super) fn address(result: &RunValue) -> *mut u8 {
    result.tensor().map_or(std::ptr::null_mut(), |t| {
        let cells = t.layout().offset as isize * t.dtype().size() as isize;
        t.storage().address().wrapping_offset(cells)
    })
}
