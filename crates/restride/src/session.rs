//! Many runs on the same memory: inputs and outputs are the caller's, and a run does nothing but compute.

use crate::compile::Compiled;
use crate::constants::HeldConstants;
use crate::instance::Instance;
use crate::prepare::PreparedSegment;
use crate::ranks::{as_rank, ready};
use restride_exec::collective::Engine;
use restride_exec::inputs::{BoundInputs, Strides, bind, check_sharing, same_strides, user_inputs};
use restride_exec::interp::{Outputs, RunOptions, written_inputs};
use restride_exec::run::{BoundRun, RunCtx};
use restride_exec::{Addresses, Inputs, RunValue, State};
use restride_ir::{AliasRoot, Binding, Error, ErrorKind, InputKind, OutputKind, Result};
use restride_tensor::{AccessError, RawTensor};
use std::sync::Arc;
use std::time::Duration;

/// An instance bound to inputs and outputs, whose memory stays the same from run to run. A step is a call of its kernel, and a run
/// allocates nothing but the scratch of kernels that do not declare it.
///
/// ```
/// use restride::{CompileOptions, Compiled, Inputs, OpenOptions, RunOptions};
/// # fn main() -> restride::Result<()> {
/// # let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/examples/llama_decode.pt2");
/// let program = restride::open(&path, &OpenOptions::default())?;
/// let inputs = Inputs::from_samples(&program).expect("the file has sample inputs")?;
/// let compiled = Compiled::new(program, Some(&inputs), &CompileOptions::default())?;
///
/// let mut session = compiled.instance()?.session(&inputs, &[], &RunOptions::default())?;
/// for _ in 0..3 {
///     // New inputs are written into the memory of the old ones.
///     session.run()?;
/// }
/// println!("{:?}", session.outputs().values[0]);
/// # Ok(())
/// # }
/// ```
pub struct Session {
    /// The instance's program, and the one for the sizes of this session.
    general: Compiled,
    compiled: Compiled,
    state: State,
    bound: BoundRun,
    outputs: Outputs,
    segment: Arc<PreparedSegment>,
    constants: HeldConstants,
    options: RunOptions,
    runs: u64,
    /// Positions of the user's inputs among the program's, of the user's outputs, and of the bases of outputs.
    user: (Vec<usize>, Vec<usize>),
    bases: Vec<usize>,
    /// Inputs that a run writes.
    written: Vec<usize>,
    /// Outputs that are views, by position among the user's, and what they are views of.
    views: Vec<(usize, AliasRoot)>,
    /// Each input is memory of its own, and no gradient is a view.
    plain: bool,
    engine: Option<Arc<dyn Engine>>,
}

impl Instance {
    /// Binds the instance to inputs and outputs. `outputs` has, by position among the user outputs, memory for outputs that are
    /// no views of other memory, of their element type, sizes and strides; the others get memory of their own. Behind the user
    /// outputs, it may have memory for the bases that outputs are views of ([`Session::bases`]).
    ///
    /// # Errors
    /// As [`Instance::run`], and for programs whose sizes, numbers or input metadata a run changes. Memory that is written and
    /// read-only, or that overlaps other memory of the session.
    pub fn session(self, inputs: &Inputs, outputs: &[Option<RawTensor>], options: &RunOptions) -> Result<Session> {
        let (compiled, _) = self.bound(inputs)?;
        let (general, state, arena, mut constants, runs, engine) = self.into_parts();
        let program = compiled.functional();
        let changes = program.signature.outputs.iter().any(|o| matches!(o.kind, OutputKind::Metadata(_)));
        if compiled.segments().len() > 1 || changes {
            let what = "the program has sizes that each run tells anew: it cannot be bound to memory";
            return Err(Error::unsupported(what).help("run it with Instance::run"));
        }
        // Inputs on a file's memory are copied now: a later write must not move them.
        for t in inputs.values.iter().filter_map(RunValue::tensor) {
            match t.storage().unshare() {
                // Read-only memory does not move.
                Ok(()) | Err(AccessError::ReadOnly) => {}
                Err(e) => return Err(Error::new(ErrorKind::Inputs, format!("an input cannot be bound: {e}"))),
            }
        }
        let bound = bind(program, inputs, &state, Strides::AsDeclared)?;
        check_sharing(program, &bound, &written_inputs(program))?;
        let positions = |is: fn(&OutputKind) -> bool| -> Vec<usize> {
            let outputs = program.signature.outputs.iter().enumerate();
            outputs.filter(|(_, o)| is(&o.kind)).map(|(i, _)| i).collect()
        };
        let user = positions(|kind| matches!(kind, OutputKind::User | OutputKind::Loss));
        let bases = positions(|kind| matches!(kind, OutputKind::Base));
        let given = given_memory(&user, &bases, outputs, program.signature.outputs.len())?;
        // Sizes of a session stay, so the ranks agree once.
        as_rank(engine.as_ref(), || ready(program, &bound.symbols))?;
        let segment = compiled.segment(0, &bound.symbols)?;
        let mut values = bound.values;
        constants.add(&segment, compiled.constants(), &mut values)?;
        let signature = &program.signature;
        let is_user = |at: usize| matches!(signature.outputs[at].kind, OutputKind::User | OutputKind::Loss);
        let plain = (0..signature.outputs.len()).all(|at| signature.outputs[at].alias.is_none() || is_user(at))
            && signature.inputs.iter().all(|i| !matches!(i.kind, InputKind::Storage(_)));
        let alias = |(position, at): (usize, &usize)| Some((position, signature.outputs[*at].alias.as_ref()?.root));
        let views = user.iter().enumerate().filter_map(alias).collect();
        let mut session = Session {
            user: (user_inputs(program).map(|(i, _)| i).collect(), user),
            bases,
            written: written_inputs(program),
            views,
            plain,
            bound: BoundRun::new(segment.runnable.clone(), arena, values, given)?,
            constants,
            outputs: Outputs::default(),
            segment,
            options: options.clone(),
            general,
            compiled: compiled.clone(),
            state,
            runs,
            engine,
        };
        session.outputs = restride_exec::outputs::outputs(
            program,
            &session.bound.inputs()[..program.signature.inputs.len()],
            &session.bound.results()?,
            &bound.symbols,
            &mut session.state,
        )?;
        Ok(session)
    }
}

impl Session {
    /// Runs once: reads the inputs' memory, and writes the outputs'.
    ///
    /// # Errors
    /// A kernel's own error, such as an index out of range. Memory that was resized since, or that is in use: nothing is written
    /// then.
    pub fn run(&mut self) -> Result<()> {
        self.refresh()?;
        let ctx = self.ctx();
        let (engine, bound) = (&self.engine, &mut self.bound);
        as_rank(engine.as_ref(), || bound.run(ctx))?;
        self.runs = self.runs.wrapping_add(1);
        Ok(())
    }

    /// Runs once with some inputs and outputs at addresses, by their positions in [`Session::places`]. Costs a call less than
    /// [`Session::rebind`], and locks no memory there. [`Session::outputs`] and the next [`Session::run`] are as if this had not run.
    ///
    /// # Errors
    /// As [`Session::run`]. Memory that is not aligned as views of it need, an input that is written and meets another one, and
    /// programs for inputs that share memory.
    pub fn run_at(&mut self, at: &Addresses) -> Result<()> {
        if !self.plain {
            let what = "the program is for inputs that share memory: addresses do not tell which";
            return Err(Error::unsupported(what).help("give tensors to Session::rebind"));
        }
        self.refresh()?;
        let program = self.compiled.functional();
        at.check_sharing(program, &self.bound.inputs()[..program.signature.inputs.len()], &self.written)?;
        let ctx = self.ctx();
        let (engine, bound) = (&self.engine, &mut self.bound);
        as_rank(engine.as_ref(), || bound.run_at(at, ctx))?;
        self.runs = self.runs.wrapping_add(1);
        Ok(())
    }

    /// Positions among the program's inputs and outputs, for [`Addresses`]: of the user's inputs, and of the user's outputs with the
    /// bases of outputs behind them.
    pub fn places(&self) -> (&[usize], impl Iterator<Item = usize>) {
        (&self.user.0, self.user.1.iter().chain(&self.bases).copied())
    }

    /// Runs once and replaces `times` by the time of each step of the placement.
    pub(crate) fn run_timed(&mut self, times: &mut Vec<Duration>) -> Result<()> {
        self.refresh()?;
        let ctx = self.ctx();
        let (engine, bound) = (&self.engine, &mut self.bound);
        as_rank(engine.as_ref(), || bound.run_timed(ctx, times))?;
        self.runs = self.runs.wrapping_add(1);
        Ok(())
    }

    /// Goes on with other inputs and outputs. Those of the types, sizes and strides of the ones before cost less than a new session:
    /// steps stay bound, and their addresses change. `outputs` is as for [`Instance::session`].
    ///
    /// ```
    /// # use restride::{CompileOptions, Compiled, Inputs, OpenOptions, RunOptions};
    /// # let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/examples/vit_small.pt2"));
    /// # let program = restride::open(path, &OpenOptions::default())?;
    /// let inputs = Inputs::from_samples(&program).expect("the file has sample inputs")?;
    /// let compiled = Compiled::new(program, Some(&inputs), &CompileOptions::default())?;
    /// let mut session = compiled.instance()?.session(&inputs, &[], &RunOptions::default())?;
    /// session.run()?;
    /// let first = session.outputs().values[0].clone();
    /// session.rebind(&inputs.deep_clone(), &[])?; // other memory, for the outputs too
    /// session.run()?;
    /// let second = session.outputs().values[0].tensor().expect("a tensor");
    /// assert!(!first.tensor().expect("a tensor").storage().same(second.storage()));
    /// # Ok::<(), restride::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Instance::session`]; then the session is as before.
    pub fn rebind(&mut self, inputs: &Inputs, outputs: &[Option<RawTensor>]) -> Result<()> {
        let given =
            given_memory(&self.user.1, &self.bases, outputs, self.compiled.functional().signature.outputs.len())?;
        if let Some(changed) = self.moved(inputs, &given) {
            return self.follow(changed, given, inputs);
        }
        let compiled = self.compiled.clone();
        let program = compiled.functional();
        let (of_sizes, bound) = self.general.bound(inputs, &self.state)?;
        check_sharing(program, &bound, &self.written)?;
        if !of_sizes.is(&compiled) || !Arc::ptr_eq(&compiled.segment(0, &bound.symbols)?, &self.segment) {
            let what = "the inputs have other sizes than those of the session";
            return Err(Error::new(ErrorKind::Inputs, what).help("make a session for these sizes"));
        }
        let (mut values, symbols) = (bound.values, bound.symbols);
        self.constants.add(&self.segment, compiled.constants(), &mut values)?;
        self.bound.rebase(values.into_iter().enumerate().collect(), given)?;
        let results = self.bound.results()?;
        let own = &self.bound.inputs()[..program.signature.inputs.len()];
        self.outputs = restride_exec::outputs::outputs(program, own, &results, &symbols, &mut self.state)?;
        Ok(())
    }

    /// The inputs in other memory than before, where all values are of the types, sizes and strides of the ones before, and views of them
    /// or of given memory begin at the same places; `None` elsewhere.
    fn moved(&self, inputs: &Inputs, given: &[Option<RawTensor>]) -> Option<Vec<(usize, RunValue)>> {
        let known = self.plain && inputs.values.len() == self.user.0.len();
        let mut changed = Vec::new();
        for (i, value) in self.user.0.iter().zip(&inputs.values).filter(|_| known) {
            let old = &self.bound.inputs()[*i];
            if !alike(old, value) {
                return None;
            }
            if let (Some(a), Some(b)) = (old.tensor(), value.tensor())
                && (!a.storage().same(b.storage()) || a.layout().offset != b.layout().offset)
            {
                changed.push((*i, value.clone()));
            }
        }
        let holds = |new: &RawTensor, old: &RawTensor| {
            new.layout().offset == old.layout().offset && new.storage().len() >= old.storage().len()
        };
        let stays = |root: &AliasRoot| match *root {
            AliasRoot::Input(i) => changed
                .iter()
                .filter(|(at, _)| *at == i)
                .all(|(_, value)| value.tensor().zip(self.bound.inputs()[i].tensor()).is_none_or(|(a, b)| holds(a, b))),
            AliasRoot::Base(i) => self.bound.memory(i).is_none_or(|old| match &given[i] {
                Some(new) => holds(new, old),
                None => self.bound.fresh_offset(i) == Some(old.layout().offset),
            }),
        };
        (known && self.views.iter().all(|(_, root)| stays(root))).then_some(changed)
    }

    /// Goes on with inputs and outputs that [`Session::moved`] knows.
    fn follow(
        &mut self,
        changed: Vec<(usize, RunValue)>,
        given: Vec<Option<RawTensor>>,
        inputs: &Inputs,
    ) -> Result<()> {
        let program = self.compiled.functional();
        if !self.written.is_empty() {
            let mut values: Vec<&RunValue> = self.bound.inputs()[..program.signature.inputs.len()].iter().collect();
            changed.iter().for_each(|(i, value)| values[*i] = value);
            if meets_written(&values, &self.written) {
                let values = values.into_iter().cloned().collect();
                check_sharing(program, &BoundInputs { values, symbols: Binding::new() }, &self.written)?;
            }
        }
        self.bound.rebase(changed, given)?;
        let results = self.bound.results()?;
        let own = self.bound.inputs();
        let Outputs { values, gradients, inputs: user, .. } = &mut self.outputs;
        for (value, at) in values.iter_mut().zip(&self.user.1) {
            if program.signature.outputs[*at].alias.is_none() {
                value.clone_from(&results[*at]);
            }
        }
        for (position, root) in &self.views {
            let root = match *root {
                AliasRoot::Input(i) => own[i].tensor(),
                AliasRoot::Base(i) => results[i].tensor(),
            };
            let view = values[*position]
                .tensor()
                .zip(root)
                .and_then(|(old, root)| RawTensor::new(root.storage().clone(), old.dtype(), old.layout().clone()));
            let outside = || Error::invalid("an output leaves the memory that it is a view of");
            values[*position] = RunValue::Tensor(view.ok_or_else(outside)?);
        }
        let made = program.signature.outputs.iter().zip(&results);
        let made = made.filter(|(o, _)| matches!(o.kind, OutputKind::Gradient(_))).filter_map(|(_, r)| r.tensor());
        gradients.iter_mut().zip(made).for_each(|((_, gradient), t)| gradient.clone_from(t));
        user.clone_from(&inputs.values);
        Ok(())
    }

    /// Sets the seed of the runs to come, which random operators count from here: equal seeds draw equal numbers.
    pub fn set_seed(&mut self, seed: u64) {
        self.options.seed = seed;
        self.options.call = 0u64.wrapping_sub(self.runs);
    }

    /// Computes what weights decide again, where one was changed since the last run.
    fn refresh(&mut self) -> Result<()> {
        if self.constants.are_current(&self.segment, self.bound.inputs()) {
            return Ok(());
        }
        let own = self.compiled.functional().signature.inputs.len();
        let mut values = self.bound.inputs()[..own].to_vec();
        self.constants.add(&self.segment, self.compiled.constants(), &mut values)?;
        self.bound.rebind(values)
    }

    fn ctx(&self) -> RunCtx {
        let call = self.options.call.wrapping_add(self.runs);
        RunCtx { seed: self.options.seed, call, iteration: 0, threads: self.options.threads }
    }

    /// What runs.
    pub(crate) fn segment(&self) -> &PreparedSegment {
        &self.segment
    }

    /// The outputs, which every run leaves in the same memory.
    pub fn outputs(&self) -> &Outputs {
        &self.outputs
    }

    /// Fresh memory that outputs are views of, by the order of [`OutputKind::Base`] in the signature.
    ///
    /// # Errors
    /// A number that no run has learnt.
    pub fn bases(&self) -> Result<Vec<RunValue>> {
        let results = self.bound.results()?;
        Ok(self.bases.iter().map(|i| results[*i].clone()).collect())
    }

    /// Parameters, buffers and constants as they are now.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The instance, for other inputs.
    pub fn into_instance(self) -> Instance {
        let arena = self.bound.into_arena();
        Instance::from_parts((self.general, self.state, arena, self.constants, self.runs, self.engine))
    }
}

/// Memory that a caller gives, by the position of the output: of the user's outputs first, and of bases behind them.
fn given_memory(
    user: &[usize],
    bases: &[usize],
    outputs: &[Option<RawTensor>],
    count: usize,
) -> Result<Vec<Option<RawTensor>>> {
    let has = user.len() + bases.len();
    if outputs.len() > has {
        let what = format!("memory for {} outputs is given, the program has {has}", outputs.len());
        return Err(Error::new(ErrorKind::Inputs, what));
    }
    let mut given = vec![None; count];
    for (at, t) in user.iter().chain(bases).zip(outputs) {
        given[*at] = t.clone();
    }
    Ok(given)
}

/// Whether a value can stand for another one without a look at the program.
fn alike(old: &RunValue, new: &RunValue) -> bool {
    match (old, new) {
        (RunValue::Tensor(a), RunValue::Tensor(b)) => {
            let lazy = a.conj || a.neg || b.conj || b.neg;
            a.dtype() == b.dtype() && same_strides(a.layout(), b.layout()) && !lazy
        }
        (RunValue::Scalar(a), RunValue::Scalar(b)) => a == b,
        (RunValue::Str(a), RunValue::Str(b)) => a == b,
        (RunValue::None, RunValue::None) => true,
        _ => false,
    }
}

/// Whether an input that is written shares memory with another one.
fn meets_written(values: &[&RunValue], written: &[usize]) -> bool {
    written.iter().filter_map(|w| Some((*w, values.get(*w)?.tensor()?))).any(|(w, a)| {
        let others = values.iter().enumerate().filter(|(i, _)| *i != w).filter_map(|(_, v)| v.tensor());
        others.into_iter().any(|b| a.storage().meets(b.storage()))
    })
}
