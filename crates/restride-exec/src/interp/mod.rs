//! The interpreter: runs a program with true storages, strides and mutation, as eager PyTorch does. It is the oracle
//! that everything else is held against, so it is kept plain: one node after the other, every value a tensor object
//! of its own, every write through the memory that its target really has.
//!
//! - `frame` runs one graph: arguments, results, symbols, the life of values.
//! - `call` runs one operator call: views alias, metadata operators change the object, kernels compute.
//! - `write` runs mutating calls as their functional twin followed by a write, with PyTorch's refusals.
//! - `control_flow` runs higher-order operators.
//! - `finish` applies declared mutations and gives the outputs.

mod call;
mod control_flow;
mod finish;
mod frame;
mod write;

#[cfg(test)]
mod tests;

pub(crate) use call::{numbers, plain, run_members};
pub(crate) use frame::numbers_of;
pub(crate) use write::{check_overlap, check_store, overwrite, visits_for};

use crate::inputs::{BoundInputs, Inputs, RunValue, State, Strides, bind, check_sharing};
use crate::run::RunCtx;
use restride_ir::{Arg, Error, GraphId, Op, OutputKind, Program, Result, RngKey, Scalar, Stage, ValueId};
use restride_kernels::support::threads::within;
use restride_tensor::RawTensor;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// How to run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Seed of the program's random operators.
    pub seed: u64,
    /// Number of the run of the instance: random operators draw anew in each.
    pub call: u64,
    /// Threads that a kernel may use; results do not depend on it.
    pub threads: usize,
    /// In an imported program, strides that differ from those of the file are an error.
    pub strict: bool,
}

impl Default for RunOptions {
    fn default() -> Self {
        RunOptions { seed: 0, call: 0, threads: 1, strict: false }
    }
}

impl RunOptions {
    /// The seed, call and threads of a planned run.
    pub(crate) fn of(ctx: RunCtx) -> RunOptions {
        RunOptions { seed: ctx.seed, call: ctx.call, threads: ctx.threads, strict: false }
    }
}

/// The results of a run. Tensors share storages as the program made them share.
#[derive(Clone, Debug, Default)]
pub struct Outputs {
    /// The user outputs (a loss among them), in order.
    pub values: Vec<RunValue>,
    /// Gradients of a joint program, with the position among the inputs.
    pub gradients: Vec<(usize, RawTensor)>,
    /// The user inputs as they are after the run, in order: `t_` on an input changes the tensor itself.
    pub inputs: Vec<RunValue>,
}

/// A tensor object, as a Python variable refers to it: all holders see an in-place change of its sizes.
pub(crate) type Object = Rc<RefCell<RawTensor>>;

/// A value while a program runs.
#[derive(Clone, Debug)]
pub(crate) enum Slot {
    Tensor(Object),
    Scalar(Scalar),
    Str(Arc<str>),
    None,
}

impl Slot {
    pub(crate) fn new(t: RawTensor) -> Slot {
        Slot::Tensor(Rc::new(RefCell::new(t)))
    }
    /// The tensor as it is now.
    pub(crate) fn tensor(&self) -> Option<RawTensor> {
        match self {
            Slot::Tensor(t) => Some(t.borrow().clone()),
            _ => None,
        }
    }
    fn from_value(value: &RunValue) -> Slot {
        match value {
            RunValue::Tensor(t) => Slot::new(t.clone()),
            RunValue::Scalar(s) => Slot::Scalar(*s),
            RunValue::Str(s) => Slot::Str(s.clone()),
            RunValue::None => Slot::None,
        }
    }
    fn to_value(&self) -> RunValue {
        match self {
            Slot::Tensor(t) => RunValue::Tensor(t.borrow().clone()),
            Slot::Scalar(s) => RunValue::Scalar(*s),
            Slot::Str(s) => RunValue::Str(s.clone()),
            Slot::None => RunValue::None,
        }
    }
}

/// One run.
pub(crate) struct Interp<'p> {
    program: &'p Program,
    options: &'p RunOptions,
    /// Per graph and position in its order: the values whose last use is that node.
    last_uses: BTreeMap<GraphId, Rc<Vec<Vec<ValueId>>>>,
    /// How deep in bodies of higher-order operators.
    depth: usize,
}

/// Runs a program on inputs and state; the program may write both.
pub fn interpret(program: &Program, inputs: &Inputs, state: &mut State, options: &RunOptions) -> Result<Outputs> {
    let functional = program.stage == Stage::Functional;
    let bound = bind(program, inputs, state, if functional { Strides::AsDeclared } else { Strides::Any })?;
    if functional {
        check_sharing(program, &bound, &written_inputs(program))?;
    }
    let BoundInputs { values, mut symbols } = bound;
    let objects: Vec<Slot> = values.iter().map(Slot::from_value).collect();
    let mut interp = Interp { program, options, last_uses: BTreeMap::new(), depth: 0 };
    let pool = if options.threads > 1 { Some(crate::run::pool(options.threads)?) } else { None };
    let results = within(pool.as_ref(), || interp.run_graph(program.main, &objects, &mut symbols, 0))?;
    interp.finish(&objects, results, &symbols, state)
}

/// Runs one call of an operator by itself.
pub(crate) fn call_once(
    op: Op,
    args: &[Arg<RunValue, Scalar>],
    key: RngKey,
    options: &RunOptions,
) -> Result<Vec<RunValue>> {
    let slots: Vec<Arg<Slot, Scalar>> = args
        .iter()
        .map(|a| {
            Ok(match a.try_map(|v| Ok(Slot::from_value(v)), |s| Ok::<_, Error>(*s))? {
                Arg::Value(Slot::Scalar(s)) => Arg::Scalar(s),
                Arg::Value(Slot::Str(s)) => Arg::Str(s),
                Arg::Value(Slot::None) => Arg::None,
                other => other,
            })
        })
        .collect::<Result<_>>()?;
    Ok(call_slots(op, &slots, key, options)?.iter().map(Slot::to_value).collect())
}

/// Runs one call of an operator on tensor objects.
pub(crate) fn call_slots(op: Op, args: &[Arg<Slot, Scalar>], key: RngKey, options: &RunOptions) -> Result<Vec<Slot>> {
    alone(options, |interp| interp.call(op, args, key))
}

/// An interpreter without a program.
fn alone<R>(options: &RunOptions, f: impl FnOnce(&mut Interp<'_>) -> R) -> R {
    let program = Program::new("", Stage::Functional);
    f(&mut Interp { program: &program, options, last_uses: BTreeMap::new(), depth: 0 })
}

/// Positions of the inputs whose memory a program declares to write.
pub fn written_inputs(program: &Program) -> Vec<usize> {
    let kinds = program.signature.outputs.iter().map(|o| &o.kind);
    kinds.filter_map(|k| if let OutputKind::Mutation(i) = k { Some(*i) } else { None }).collect()
}
