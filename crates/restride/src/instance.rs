//! Running a compiled program: an arena and a state, run after run.

use crate::compile::Compiled;
use crate::constants::HeldConstants;
use crate::prepare::{PreparedSegment, UpperBound};
use crate::progress::Doing;
use crate::ranks::{as_rank, ready};
use restride_exec::collective::Engine;
use restride_exec::copy::copy_as;
use restride_exec::inputs::{BoundInputs, Strides, bind, check_sharing, evaluate, same_strides};
use restride_exec::interp::{Outputs, RunOptions, written_inputs};
use restride_exec::run::{ByteArena, RunCtx, fit_learnt, run_bodies, run_learn};
use restride_exec::{Inputs, RunValue, State};
use restride_ir::{Arg, Binding, Error, Node, Program, Result, Type};
use restride_passes::segment::SegmentInput;
use std::sync::Arc;

/// An arena and a state for one compiled program. It may go to another thread; threads that run at the same time have one each.
pub struct Instance {
    compiled: Compiled,
    state: State,
    arena: ByteArena,
    constants: HeldConstants,
    runs: u64,
    engine: Option<Arc<dyn Engine>>,
}

/// What an instance consists of.
pub(crate) type InstanceParts = (Compiled, State, ByteArena, HeldConstants, u64, Option<Arc<dyn Engine>>);

impl Compiled {
    /// An arena, empty until the first run, and the state that the program was exported with.
    ///
    /// # Errors
    /// A weight that does not fit its storage.
    pub fn instance(&self) -> Result<Instance> {
        Ok(Instance::new(self.clone(), State::new(self.functional())?))
    }
}

impl Instance {
    pub(crate) fn new(compiled: Compiled, state: State) -> Instance {
        let (arena, constants) = (ByteArena::default(), HeldConstants::default());
        Instance { compiled, state, arena, constants, runs: 0, engine: None }
    }

    /// Carries out the program's collectives with an engine: this instance is one rank of several. Without one they run with the
    /// thread's engine ([`crate::collective::with_engine`]), or in a group of one rank.
    pub fn set_engine(&mut self, engine: Arc<dyn Engine>) {
        self.engine = Some(engine);
    }

    /// Runs the program. Inputs are borrowed, and their memory shows the program's mutations. Outputs are fresh memory, or views of
    /// inputs where eager PyTorch's are.
    ///
    /// ```
    /// # use restride::{CompileOptions, Compiled, Inputs, OpenOptions, RunOptions};
    /// # let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/examples/llama_decode.pt2"));
    /// let program = restride::open(path, &OpenOptions::default())?;
    /// let inputs = Inputs::from_samples(&program).expect("the file has sample inputs")?;
    /// let compiled = Compiled::new(program, Some(&inputs), &CompileOptions::default())?;
    /// let mut instance = compiled.instance()?;
    /// let outputs = instance.run(&inputs, &RunOptions { threads: 2, ..RunOptions::default() })?;
    /// let logits = outputs.values[0].tensor().expect("a tensor");
    /// assert_eq!(logits.layout().sizes[..], [1, 1, 128]);
    /// # Ok::<(), restride::Error>(())
    /// ```
    ///
    /// # Errors
    /// Inputs that do not fit (element type, sizes, guards, strides or shared memory that the program was not made for):
    /// nothing is written then. A kernel's own error, such as an index out of range, comes where it would come in PyTorch. Ranks
    /// that do not run the same collectives on the same sizes: on all of them, and nothing is written. An error of one rank is one
    /// of all.
    pub fn run(&mut self, inputs: &Inputs, options: &RunOptions) -> Result<Outputs> {
        self.run_showing(inputs, options, &mut |_| {})
    }

    /// As [`Instance::run`], showing each segment that it runs.
    pub(crate) fn run_showing(
        &mut self,
        inputs: &Inputs,
        options: &RunOptions,
        seen: &mut dyn FnMut(Arc<PreparedSegment>),
    ) -> Result<Outputs> {
        as_rank(self.engine.clone().as_ref(), || self.run_segments(inputs, options, seen))
    }

    /// The program that runs on these inputs, and what is bound to it: the one for their sizes ([`Compiled::at`]), unless the memory that
    /// was reserved is too small for it.
    pub(crate) fn bound(&self, inputs: &Inputs) -> Result<(Compiled, BoundInputs)> {
        let own = &self.compiled;
        let (found, bound) = own.bound(inputs, &self.state)?;
        let fits = || -> Result<bool> {
            let one = found.segments().len() == 1;
            Ok(one && found.segment(0, &bound.symbols)?.plan.arena_bytes <= self.arena_bytes())
        };
        if found.is(own) || !self.arena.is_fixed() || fits()? {
            return Ok((found, bound));
        }
        Ok((own.clone(), bind(own.functional(), inputs, &self.state, Strides::AsDeclared)?))
    }

    fn run_segments(
        &mut self,
        inputs: &Inputs,
        options: &RunOptions,
        seen: &mut dyn FnMut(Arc<PreparedSegment>),
    ) -> Result<Outputs> {
        let (compiled, bound) = self.bound(inputs)?;
        let program = compiled.functional();
        check_sharing(program, &bound, &written_inputs(program))?;
        ready(program, &bound.symbols)?;
        let mut symbols = bound.symbols;
        let ctx = RunCtx {
            seed: options.seed,
            call: options.call.wrapping_add(self.runs),
            iteration: 0,
            threads: options.threads,
        };
        let find = |s: &SegmentInput, live: &[RunValue]| match s {
            SegmentInput::Input(i) => bound.values[*i].clone(),
            SegmentInput::Live(i) => live[*i].clone(),
        };
        let mut live: Vec<RunValue> = Vec::new();
        for (at, segment) in compiled.segments().iter().enumerate() {
            // Where types do not fit, a check that comes first says why.
            let prepared = compiled
                .segment(at, &symbols)
                .map_err(|e| broken_check(&segment.program, &symbols, ctx).unwrap_or(e))?;
            let mut values: Vec<RunValue> = segment.inputs.iter().map(|s| find(s, &live)).collect();
            self.constants.add(&prepared, compiled.constants(), &mut values)?;
            compiled.progress().tell(Doing::Running);
            let results = prepared.runnable.run(&mut self.arena, &values, ctx)?;
            seen(prepared);
            let Some(learn) = &segment.learn else {
                self.runs = self.runs.wrapping_add(1);
                // The last segment has the program's own inputs first, then values of earlier segments.
                let own = &values[..program.signature.inputs.len()];
                return restride_exec::outputs::outputs(program, own, &results, &symbols, &mut self.state);
            };
            for (at, (&number, value)) in segment.live.iter().zip(results).enumerate() {
                keep(&mut live, number, as_declared(&segment.program, at, value, &symbols)?);
            }
            let operands: Vec<RunValue> = learn.operands.iter().map(|s| find(s, &live)).collect();
            let read: Vec<bool> = learn.live.iter().map(Option::is_some).collect();
            let ran = match learn.node.op.def().hop {
                Some(_) => run_bodies(program, &learn.node, &learn.types, &operands, &symbols, ctx),
                None => run_learn(&learn.node, &operands, &symbols, ctx),
            };
            let results = ran
                .and_then(|r| fit_learnt(&learn.node, &learn.types, &read, r, &mut symbols))
                .map_err(|e| e.at(program.graph(), learn.position))?;
            for (number, value) in learn.live.iter().zip(results) {
                if let Some(number) = number {
                    keep(&mut live, *number, value);
                }
            }
        }
        Err(Error::invalid("a program without a last segment"))
    }

    /// Parameters, buffers and constants as they are now.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The same, to be moved to memory of the caller ([`State::move_to`], [`State::resume`]) or to have values set.
    pub fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }

    /// Goes on from another state, such as one saved before.
    pub fn set_state(&mut self, state: State) {
        self.state = state;
    }

    /// Back to the state that the program was exported with.
    ///
    /// # Errors
    /// A weight that does not fit its storage.
    pub fn reset(&mut self) -> Result<()> {
        self.state = State::new(self.compiled.functional())?;
        self.runs = 0;
        Ok(())
    }

    pub(crate) fn from_parts((compiled, state, arena, constants, runs, engine): InstanceParts) -> Instance {
        Instance { compiled, state, arena, constants, runs, engine }
    }

    pub(crate) fn into_parts(self) -> InstanceParts {
        (self.compiled, self.state, self.arena, self.constants, self.runs, self.engine)
    }

    /// Bytes of the arena as it is.
    pub fn arena_bytes(&self) -> i64 {
        self.arena.bytes() as i64
    }

    fn take(&mut self, bytes: i64) -> Result<i64> {
        self.arena.take(usize::try_from(bytes).unwrap_or(usize::MAX))?;
        Ok(self.arena_bytes())
    }

    /// Grows the arena to [`Compiled::upper_bound`], so that no later run grows it; a run that would need more is refused. Returns
    /// the arena's bytes.
    ///
    /// ```
    /// # use restride::{CompileOptions, Compiled, OpenOptions};
    /// # let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/examples/vit_small.pt2"));
    /// let program = restride::open(path, &OpenOptions::default())?;
    /// let mut instance = Compiled::new(program, None, &CompileOptions::default())?.instance()?;
    /// let bytes = instance.reserve()?;
    /// assert!(instance.arena_bytes() >= bytes);
    /// # Ok::<(), restride::Error>(())
    /// ```
    ///
    /// # Errors
    /// A program whose arena has no such bound, with the reason; more memory than the system has.
    pub fn reserve(&mut self) -> Result<i64> {
        match self.compiled.upper_bound().clone() {
            UpperBound::Bytes(bytes) => self.take(bytes).inspect(|_| self.arena.fix()),
            UpperBound::Unknown(why) => {
                Err(Error::unsupported(format!("the memory that the program needs has no bound: {why}"))
                    .help("Instance::reserve_for takes the memory for given inputs"))
            }
        }
    }

    /// Grows the arena to the bytes that these inputs need, without a run: up to the first node whose results tell sizes. Returns
    /// the arena's bytes.
    ///
    /// ```
    /// # use restride::{CompileOptions, Compiled, Inputs, OpenOptions};
    /// # let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/pt2/dynamic_batch.pt2"));
    /// let program = restride::open(path, &OpenOptions::default())?;
    /// let inputs = Inputs::from_samples(&program).expect("the file has sample inputs")?;
    /// let mut instance = Compiled::new(program, Some(&inputs), &CompileOptions::default())?.instance()?;
    /// instance.reserve_for(&inputs)?; // runs on inputs of these sizes do not grow the arena
    /// # Ok::<(), restride::Error>(())
    /// ```
    ///
    /// # Errors
    /// Inputs that do not fit.
    pub fn reserve_for(&mut self, inputs: &Inputs) -> Result<i64> {
        let (compiled, bound) = self.compiled.bound(inputs, &State::new(self.compiled.functional())?)?;
        let bytes = compiled.segment(0, &bound.symbols)?.plan.arena_bytes;
        self.take(bytes)
    }

    /// The state, of an instance that is needed no more.
    pub fn into_state(self) -> State {
        self.state
    }
}

/// The error of the first recorded check of a program that these numbers fail.
fn broken_check(program: &Program, symbols: &Binding, ctx: RunCtx) -> Option<Error> {
    let graph = program.graph();
    let known = |n: &Node| n.args.iter().flat_map(Arg::scalars).all(|e| e.eval(symbols).is_ok());
    let mut checks = graph.ordered().filter(|(_, n)| n.op.def().asserts.is_some() && known(n));
    checks.find_map(|(id, node)| run_learn(node, &[], symbols, ctx).err().map(|e| e.at(graph, id)))
}

/// An output of a segment with the strides that later segments expect: results with several elements in one cell are returned
/// row-major.
fn as_declared(segment: &Program, at: usize, value: RunValue, symbols: &Binding) -> Result<RunValue> {
    let declared = segment.graph().outputs[at].values().next().map(|v| &segment.graph().values[*v].ty);
    let (Some(ty), RunValue::Tensor(t)) = (declared.and_then(Type::tensor), &value) else { return Ok(value) };
    Ok(match evaluate(&ty.layout, symbols) {
        Some(layout) if layout.sizes == t.layout().sizes && !same_strides(&layout, t.layout()) => {
            RunValue::Tensor(copy_as(t, layout)?)
        }
        _ => value,
    })
}

fn keep(live: &mut Vec<RunValue>, number: usize, value: RunValue) {
    if live.len() <= number {
        live.resize(number + 1, RunValue::None);
    }
    live[number] = value;
}
