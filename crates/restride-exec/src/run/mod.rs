//! The planned run: one arena, no mutation but the placement's, every value where the placement says.
//!
//! - `code` turns a placement and a plan into steps, and proves that each stays inside its memory.
//! - `steps` binds steps to memory and runs them; `control_flow` runs calls of bodies, `fused` bodies in tiles.
//! - `session` binds a runnable once for many runs.
//! - `learn` runs the nodes between pieces, whose results tell sizes.

mod arena;
mod code;
mod control_flow;
mod fused;
mod learn;
mod locks;
mod memory;
mod session;
mod steps;

pub use arena::ByteArena;
pub(crate) use arena::pool;
pub use learn::{fit_learnt, run_bodies, run_learn};
pub use session::BoundRun;

use crate::copy::allocate;
use crate::inputs::{RunValue, same_strides};
use crate::symbols::learn_number;
use code::Code;
use locks::{Locks, Name};
use memory::CallerMemory;
use restride_ir::{
    Arg, Binding, BufferKind, Error, ErrorKind, OutputKind, Placement, Plan, Program, Result, Scalar, Stage, Type,
};
use restride_kernels::support::threads::within;
use restride_tensor::RawTensor;
use std::time::Duration;
use steps::{BoundSteps, Mode};

/// Settings of one run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunCtx {
    /// Seed of random operators.
    pub seed: u64,
    /// Number of the run of the instance: random operators draw anew in each.
    pub call: u64,
    /// Loop iteration around this run; 0 outside of loops.
    pub iteration: u64,
    /// Threads that a kernel may use; results do not depend on it.
    pub threads: usize,
}

impl Default for RunCtx {
    fn default() -> Self {
        RunCtx { seed: 0, call: 0, iteration: 0, threads: 1 }
    }
}

/// A placed and planned program, ready to run. Immutable and shared between threads.
pub struct Runnable {
    program: Program,
    code: Code,
    arena_bytes: usize,
    poison: bool,
}

impl Runnable {
    /// Makes the steps of a functional program with known sizes from its placement and plan.
    ///
    /// The steps are proved to stay inside the memory that they are given. Where operands and results of a kernel meet is for
    /// `restride-check` to judge: [`Runnable::checked`] asks it.
    ///
    /// # Errors
    /// A size that is not known, a place outside of its buffer, a buffer outside of the arena, an operator without a
    /// kernel, a declared type that is not what the operator gives: with the node.
    ///
    /// # Safety
    /// Placement and plan passed `restride_check::placement` and `restride_check::plan` for this program, or were made by
    /// `restride_passes` in this process: no result overlaps an operand in a way that its kernel does not allow.
    pub unsafe fn new(program: &Program, placement: Placement, plan: Plan) -> Result<Runnable> {
        if program.stage != Stage::Functional {
            return Err(Error::invalid("only functional programs are placed"));
        }
        let arena_bytes = usize::try_from(plan.arena_bytes).map_err(|_| Error::invalid("an arena of no size"))?;
        program.limits.check_memory(arena_bytes as u64)?;
        let code = Code::new(program, program.main, &placement, &plan, None)?;
        Ok(Runnable { program: program.clone(), code, arena_bytes, poison: false })
    }

    /// As [`Runnable::new`], after the checkers of placement and plan.
    ///
    /// # Errors
    /// Those of [`Runnable::new`], and a fault that the checkers find.
    pub fn checked(program: &Program, placement: Placement, plan: Plan) -> Result<Runnable> {
        restride_check::placement(program, &placement)
            .and_then(|()| restride_check::plan(program, &placement, &plan))
            .map_err(|faults| restride_check::error(program, &faults))?;
        // SAFETY: the checkers found nothing.
        unsafe { Runnable::new(program, placement, plan) }
    }

    /// Fills buffers with NaN bytes before their first and after their last use. For tests: a step that reads memory outside of
    /// its life changes results.
    pub fn poisoned(mut self) -> Runnable {
        self.poison = true;
        self
    }

    /// Whether a step reads or writes the input at this position.
    pub fn uses_input(&self, input: usize) -> bool {
        self.code.inputs.get(input).and_then(Option::as_ref).is_some_and(CallerMemory::is_used)
    }

    /// Bytes of arena that a run needs.
    pub fn arena_bytes(&self) -> usize {
        self.arena_bytes
    }

    /// Runs on one value per graph input. Tensors are borrowed, and the program writes their memory. Returns one value per graph
    /// output; `None` for new contents of inputs, which are in the inputs' memory, and for declared views of other memory (see
    /// [`crate::outputs::outputs`]).
    ///
    /// # Errors
    /// Inputs of other types, sizes or strides than the program was placed for: nothing is written then. A kernel's own
    /// error, with the node.
    pub fn run(&self, arena: &mut ByteArena, inputs: &[RunValue], ctx: RunCtx) -> Result<Vec<RunValue>> {
        let (mut symbols, mut locks) = (Binding::new(), self.locks(inputs));
        // Results are fresh memory, which needs no lock.
        let _taken = locks.first(&|name| self.name(name))?;
        let results = self.results_in(inputs, Vec::new())?;
        let pool = arena.pool(ctx.threads)?;
        // SAFETY: the arena is borrowed and has the bytes that the code was made for, inputs were fitted to the bytes that it uses
        // and are locked, results have its border layouts; all memory lives until this returns.
        unsafe {
            let bases = self.bases(arena, inputs, &results, &mut symbols)?;
            if self.poison {
                self.spoil(arena.reserve(self.arena_bytes)?, &results);
            }
            let mode = Mode { ctx, poison: self.poison };
            within(pool.as_deref(), || {
                BoundSteps::run_once(&self.program, &self.code, &bases, mode, &mut symbols, ctx.iteration)
            })?;
        }
        self.numbers(inputs, results, &symbols)
    }

    /// The address of each buffer in an arena, inputs and results, all fitted to the code here.
    fn bases(
        &self,
        arena: &mut ByteArena,
        inputs: &[RunValue],
        results: &[RunValue],
        symbols: &mut Binding,
    ) -> Result<Vec<*mut u8>> {
        let inputs = self.addresses(inputs, symbols)?;
        let results: Vec<*mut u8> = results.iter().map(session::address).collect();
        let mut bases = Vec::with_capacity(self.code.roots.len());
        self.code.bases(arena.reserve(self.arena_bytes)?, &inputs, &results, &mut bases)?;
        Ok(bases)
    }

    /// Binds the steps to an arena, inputs and results.
    ///
    /// # Safety
    /// Storages of inputs and results are locked, or no one else has them; the memory lives, and the arena does not grow, as long
    /// as the steps run.
    unsafe fn bind(
        &self,
        arena: &mut ByteArena,
        inputs: &[RunValue],
        results: &[RunValue],
        symbols: &mut Binding,
    ) -> Result<BoundSteps<'_>> {
        let bases = self.bases(arena, inputs, results, symbols)?;
        // SAFETY: the arena has the bytes that the code was made for, inputs were fitted to the bytes that it uses, and results
        // have its border layouts; the rest is the caller's promise.
        unsafe { BoundSteps::new(&self.program, &self.code, bases, symbols) }
    }

    /// Runs steps that [`Runnable::bind`] bound to this arena and these results.
    ///
    /// # Safety
    /// As for [`Runnable::bind`].
    unsafe fn run_steps(
        &self,
        steps: &mut BoundSteps<'_>,
        arena: &mut ByteArena,
        results: &[RunValue],
        ctx: RunCtx,
        symbols: &mut Binding,
        times: Option<&mut Vec<Duration>>,
    ) -> Result<()> {
        let mode = Mode { ctx, poison: self.poison };
        // SAFETY: as promised by the caller.
        unsafe {
            if self.poison {
                self.spoil(arena.reserve(self.arena_bytes)?, results);
            }
            match times {
                None => steps.run(mode, symbols, ctx.iteration),
                Some(times) => steps.run_timed(mode, symbols, ctx.iteration, times),
            }
        }
    }

    /// The storages of inputs that steps use.
    fn locks(&self, inputs: &[RunValue]) -> Locks {
        let mut locks = Locks::default();
        for (i, (value, memory)) in inputs.iter().zip(&self.code.inputs).enumerate() {
            if let (Some(t), Some(memory)) = (value.tensor(), memory.as_ref().filter(|m| m.is_used())) {
                locks.add(t, memory.written, Name::Input(i));
            }
        }
        locks
    }

    /// How messages name memory.
    fn name(&self, name: Name) -> String {
        match name {
            Name::Input(i) => crate::inputs::input_name(&self.program, i),
            Name::Output(i) => format!("memory for output {i}"),
        }
    }

    /// Addresses of tensor inputs, whose storages are locked. Learns symbols from numbers.
    fn addresses(&self, inputs: &[RunValue], symbols: &mut Binding) -> Result<Vec<Option<*mut u8>>> {
        let graph = self.program.graph();
        if inputs.len() != graph.inputs.len() {
            let (have, want) = (inputs.len(), graph.inputs.len());
            return Err(Error::new(ErrorKind::Inputs, format!("{have} inputs are given, the graph takes {want}")));
        }
        let mut address = |i: usize, value: &RunValue| match (&self.code.inputs[i], value) {
            (Some(memory), RunValue::Tensor(t)) => memory.bind(t).map(Some),
            (Some(_), _) => Err("must be a tensor".into()),
            (None, RunValue::Scalar(s)) => match &graph.values[graph.inputs[i]].ty {
                Type::Scalar(expr) => learn_number(expr, *s, symbols).map(|()| None),
                _ => Ok(None),
            },
            (None, _) => Ok(None),
        };
        let wrong = |i: usize, why: String| {
            Error::new(ErrorKind::Inputs, format!("{} {why}", crate::inputs::input_name(&self.program, i)))
        };
        inputs.iter().enumerate().map(|(i, v)| address(i, v).map_err(|why| wrong(i, why))).collect()
    }

    /// Puts NaN bytes where nothing has been computed yet.
    ///
    /// # Safety
    /// `base` is an arena of the runnable's size; no one else uses it, or the results' memory.
    unsafe fn spoil(&self, base: *mut u8, results: &[RunValue]) {
        // SAFETY: as promised by the caller.
        unsafe {
            base.write_bytes(0xFF, self.arena_bytes);
            for t in results.iter().filter_map(RunValue::tensor) {
                let cells = t.layout().cell_range();
                let (start, bytes) = (cells.start.max(0), (cells.end - cells.start).max(0));
                let size = t.dtype().size();
                t.storage().address().add(start as usize * size).write_bytes(0xFF, bytes as usize * size);
            }
        }
    }

    /// Memory for the outputs that have some: given, by position, or fresh.
    fn results_in(&self, inputs: &[RunValue], given: Vec<Option<RawTensor>>) -> Result<Vec<RunValue>> {
        let wrong = |i: usize, what: &str| Err(Error::new(ErrorKind::Inputs, format!("memory for output {i} {what}")));
        if let Some(i) = shared_output(inputs, &given) {
            return wrong(i, "is an input's or another output's: give each memory of its own");
        }
        let mut results = Vec::with_capacity(self.code.outputs.len());
        let mut given = given.into_iter();
        for (i, ty) in self.code.outputs.iter().enumerate() {
            results.push(match (ty, given.next().flatten()) {
                (Some(ty), Some(t)) => {
                    let (want, have) = (&ty.layout, t.layout());
                    if t.dtype() != ty.dtype || have.sizes != want.sizes || !same_strides(want, have) || t.conj || t.neg
                    {
                        return wrong(i, &format!("is {}{have}, and it is {ty}", t.dtype()));
                    }
                    RunValue::Tensor(t)
                }
                (Some(ty), None) => RunValue::Tensor(allocate(ty.dtype, ty.layout.clone())?),
                (None, Some(_)) => return wrong(i, "is not used: the output is in other memory, or is no tensor"),
                (None, None) => self.passed_on(i, inputs),
            });
        }
        Ok(results)
    }

    /// An output that is an input which is no tensor.
    fn passed_on(&self, output: usize, inputs: &[RunValue]) -> RunValue {
        let graph = self.program.graph();
        let Arg::Value(v) = &graph.outputs[output] else { return RunValue::None };
        let position = graph.inputs.iter().position(|i| i == v);
        match position.map(|p| &inputs[p]) {
            Some(RunValue::Tensor(_)) | None => RunValue::None,
            Some(other) => other.clone(),
        }
    }

    /// Outputs that are numbers or constants.
    fn numbers(&self, inputs: &[RunValue], mut results: Vec<RunValue>, symbols: &Binding) -> Result<Vec<RunValue>> {
        let graph = self.program.graph();
        debug_assert_eq!(inputs.len(), graph.inputs.len());
        for (i, (arg, result)) in graph.outputs.iter().zip(&mut results).enumerate() {
            if matches!(self.program.signature.outputs.get(i).map(|o| &o.kind), Some(OutputKind::Token)) {
                continue;
            }
            let number = |e: &restride_ir::Expr| {
                let s = e.eval(symbols).map_err(|why| Error::invalid(format!("the output {e}: {why}")))?;
                Ok::<_, Error>(RunValue::Scalar(s))
            };
            match arg {
                Arg::Scalar(e) => *result = number(e)?,
                Arg::Complex(re, im) => {
                    *result = RunValue::Scalar(Scalar::Complex(restride_tensor::C64::new(*re, *im)));
                }
                Arg::Str(s) => *result = RunValue::Str(s.clone()),
                Arg::Value(v) => {
                    if let (Type::Scalar(e), RunValue::None) = (&graph.values[*v].ty, &*result) {
                        *result = number(e)?;
                    }
                }
                _ => {}
            }
        }
        Ok(results)
    }
}

/// An output whose given memory is an input's or another output's as well.
fn shared_output(inputs: &[RunValue], given: &[Option<RawTensor>]) -> Option<usize> {
    let outputs = given.iter().enumerate().filter_map(|(i, t)| Some((Some(i), t.as_ref()?)));
    let mut ranges: Vec<(usize, usize, Option<usize>)> = outputs
        .chain(inputs.iter().filter_map(|v| Some((None, v.tensor()?))))
        .map(|(output, t)| {
            let start = t.storage().address().addr();
            (start, start.saturating_add(t.storage().len()), output)
        })
        .filter(|(start, end, _)| start < end)
        .collect();
    if ranges.iter().all(|(.., output)| output.is_none()) {
        return None;
    }
    ranges.sort_unstable();
    // Ends of the memory before: of all, and of an output's.
    let (mut all, mut last) = (0, (0, None));
    for (start, end, output) in ranges {
        if output.is_some() && start < all {
            return output;
        }
        if start < last.0 {
            return last.1;
        }
        all = all.max(end);
        if output.is_some() {
            last = (end, output);
        }
    }
    None
}

/// Buffers that the caller provides, by position.
fn caller_position(kind: BufferKind) -> Option<(bool, usize)> {
    match kind {
        BufferKind::Arena => None,
        BufferKind::Input(i) => Some((true, i)),
        BufferKind::Output(i) => Some((false, i)),
    }
}

/// Threads share a runnable.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<Runnable>();
};
