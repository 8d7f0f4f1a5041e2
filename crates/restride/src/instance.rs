//! Running a compiled program: an arena and a state, run after run.

use crate::compile::{Compiled, Piece};
use crate::progress::Doing;
use restride_exec::copy::{allocate, copy_into};
use restride_exec::inputs::{Strides, bind, check_sharing, evaluate, same_strides};
use restride_exec::interp::{Options, Outputs, written_inputs};
use restride_exec::run::{Arena, RunCtx, run_learn};
use restride_exec::symbols::{Unified, unify};
use restride_exec::{Inputs, RunValue, State};
use restride_ir::{Arg, Binding, Error, ErrorKind, Node, Program, Result, Scalar, Type};
use restride_passes::segment::{Learn, Source};
use std::sync::Arc;

/// An arena and a state for one compiled program. It may go to another thread; threads that run at the same time have one each.
pub struct Instance {
    compiled: Compiled,
    state: State,
    arena: Arena,
    runs: u64,
}

impl Instance {
    pub(crate) fn new(compiled: Compiled, state: State) -> Instance {
        Instance { compiled, state, arena: Arena::default(), runs: 0 }
    }

    /// Runs the program. Inputs are borrowed: what the program does to them is seen in their memory. Outputs are fresh
    /// memory, or views of inputs where eager PyTorch's are.
    ///
    /// # Errors
    /// Inputs that do not fit (element type, sizes, guards, strides or shared memory that the program was not made for):
    /// nothing is written then. A kernel's own error, such as an index out of range, comes where it would come in PyTorch.
    pub fn run(&mut self, inputs: &Inputs, options: &Options) -> Result<Outputs> {
        self.run_pieces(inputs, options, &mut |_| {})
    }

    /// As [`Instance::run`], showing each piece that it runs.
    pub(crate) fn run_pieces(
        &mut self,
        inputs: &Inputs,
        options: &Options,
        seen: &mut dyn FnMut(Arc<Piece>),
    ) -> Result<Outputs> {
        let program = self.compiled.functional();
        let bound = bind(program, inputs, &self.state, Strides::AsDeclared)?;
        check_sharing(program, &bound, &written_inputs(program))?;
        let mut symbols = bound.symbols;
        let ctx = RunCtx {
            seed: options.seed,
            call: options.call.wrapping_add(self.runs),
            iteration: 0,
            threads: options.threads,
        };
        let mut live: Vec<RunValue> = Vec::new();
        for (at, segment) in self.compiled.segments().iter().enumerate() {
            // Where types do not fit, a check that comes first says why.
            let piece = self
                .compiled
                .piece(at, &symbols)
                .map_err(|e| broken_check(&segment.program, &symbols, ctx).unwrap_or(e))?;
            let find = |s: &Source| match s {
                Source::Input(i) => bound.values[*i].clone(),
                Source::Live(i) => live[*i].clone(),
            };
            let values: Vec<RunValue> = segment.inputs.iter().map(find).collect();
            self.compiled.progress().tell(Doing::Running);
            let results = piece.runnable.run(&mut self.arena, &values, ctx)?;
            seen(piece);
            let Some(learn) = &segment.learn else {
                self.runs = self.runs.wrapping_add(1);
                // The last segment has the program's own inputs first, then what earlier segments left.
                let own = &values[..program.signature.inputs.len()];
                return restride_exec::outputs::outputs(program, own, &results, &symbols, &mut self.state);
            };
            for (&number, value) in segment.live.iter().zip(results) {
                keep(&mut live, number, value);
            }
            let operands: Vec<RunValue> = learn
                .operands
                .iter()
                .map(|s| match s {
                    Source::Input(i) => bound.values[*i].clone(),
                    Source::Live(i) => live[*i].clone(),
                })
                .collect();
            let results = run_learn(&learn.node, &operands, &symbols, ctx)
                .and_then(|r| fit(learn, r, &mut symbols))
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

    pub(crate) fn from_parts(compiled: Compiled, state: State, arena: Arena, runs: u64) -> Instance {
        Instance { compiled, state, arena, runs }
    }

    pub(crate) fn into_parts(self) -> (Compiled, State, Arena, u64) {
        (self.compiled, self.state, self.arena, self.runs)
    }

    pub(crate) fn compiled(&self) -> &Compiled {
        &self.compiled
    }

    /// Bytes of the arena that there are.
    pub fn arena_bytes(&self) -> i64 {
        self.arena.bytes() as i64
    }

    /// Makes the arena so large, if it is smaller.
    pub(crate) fn take(&mut self, bytes: i64) -> Result<i64> {
        self.arena.take(usize::try_from(bytes).unwrap_or(usize::MAX))?;
        Ok(self.arena_bytes())
    }

    /// Runs take no more memory for the arena than there is.
    pub(crate) fn fix(&mut self) {
        self.arena.fix();
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

fn keep(live: &mut Vec<RunValue>, number: usize, value: RunValue) {
    if live.len() <= number {
        live.resize(number + 1, RunValue::None);
    }
    live[number] = value;
}

/// Holds what a node gave against what is declared, learns symbols, and gives tensors the declared layout.
fn fit(learn: &Learn, results: Vec<RunValue>, symbols: &mut Binding) -> Result<Vec<RunValue>> {
    if results.len() != learn.types.len() {
        return Err(Error::invalid(format!("{} gives {} results", learn.node.op, results.len())));
    }
    // What is not asked for has no elements, whatever sizes the exporter wrote: counts of `unique_consecutive`.
    let nothing = |at: usize, value: &RunValue| {
        let empty = matches!(value, RunValue::Tensor(t) if t.numel() == 0);
        at > 0 && empty && learn.live.get(at).is_none_or(Option::is_none)
    };
    for (at, (ty, value)) in learn.types.iter().zip(&results).enumerate() {
        if nothing(at, value) {
            continue;
        }
        match (ty, value) {
            (Type::Tensor(ty), RunValue::Tensor(t)) => {
                let sizes = &t.layout().sizes;
                if t.dtype() != ty.dtype || sizes.len() != ty.rank() {
                    return Err(Error::invalid(format!("it gives {}{sizes:?} and is declared as {ty}", t.dtype())));
                }
                for (expr, &n) in ty.sizes().iter().zip(sizes) {
                    accept(unify(expr, Scalar::Int(n), symbols), &format!("a size of {n}"))?;
                }
            }
            (Type::Scalar(expr), RunValue::Scalar(s)) => {
                accept(unify(expr, *s, symbols), &s.to_string())?;
            }
            _ => {}
        }
    }
    let lay = |(at, (ty, value)): (usize, (&Type, RunValue))| match (ty, value) {
        (_, value) if nothing(at, &value) => Ok(value),
        (Type::Tensor(ty), RunValue::Tensor(t)) => match evaluate(&ty.layout, symbols) {
            Some(declared) if !same_strides(&declared, t.layout()) || t.layout().offset != declared.offset => {
                let own = allocate(t.dtype(), declared)?;
                copy_into(&own, &t)?;
                Ok(RunValue::Tensor(own))
            }
            _ => Ok(RunValue::Tensor(t)),
        },
        (_, value) => Ok(value),
    };
    learn.types.iter().zip(results).enumerate().map(lay).collect()
}

fn accept(unified: Unified, found: &str) -> Result<()> {
    match unified {
        Unified::Agree | Unified::Open => Ok(()),
        Unified::Differs(want) => {
            Err(Error::new(ErrorKind::Program, format!("it gives {found} where {want} is declared")))
        }
        Unified::OutOfRange(why) => Err(Error::new(ErrorKind::Program, format!("it gives {found}: {why}"))),
    }
}
