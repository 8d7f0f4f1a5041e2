//! Compiled programs, instances and sessions.

use crate::arrays::{ExpectedInput, Like, copied, inputs, tensor, value};
use crate::engine::as_rank;
use crate::errors::{OrRaise, inputs_error, raise};
use pyo3::exceptions::{PyKeyError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyDict, PyList};
use restride::{CompileOptions, ErrorKind, Inputs, Outputs, Overview, RawTensor, Report, RunOptions, RunValue, State};
use restride_ir::OutputKind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Compiled for inputs in other strides, or that share memory: this many are remembered.
const VARIANTS: usize = 64;
/// Idle instances that a variant keeps.
const IDLE: usize = 16;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As [`lock`], while other threads of Python go on.
fn wait<'m, T>(py: Python<'_>, mutex: &'m Mutex<T>) -> MutexGuard<'m, T> {
    mutex.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
}

/// Outputs whose memory stays where it is, so that Python can have it while later runs write it. They may show the state: the caller
/// sees to it that no run writes it now.
fn pinned(outputs: Outputs) -> restride::Result<Outputs> {
    let values = outputs.values.iter().filter_map(RunValue::tensor);
    for tensor in values.chain(outputs.gradients.iter().map(|g| &g.1)) {
        let refuse = |e| restride::Error::new(ErrorKind::Inputs, format!("the tensor cannot be given: {e}"));
        tensor.storage().pin().map_err(refuse)?;
    }
    Ok(outputs)
}

/// Sizes and strides of inputs, and which of them share a storage.
type Shape = Vec<(Vec<i64>, Vec<i64>, i64, usize)>;

fn shape(inputs: &Inputs) -> Shape {
    let mut storages: Vec<usize> = Vec::new();
    let mut one = |v: &RunValue| match v.tensor() {
        None => (Vec::new(), Vec::new(), 0, usize::MAX),
        Some(t) => {
            let id = t.storage().id();
            let at = storages.iter().position(|s| *s == id).unwrap_or(storages.len());
            if at == storages.len() {
                storages.push(id);
            }
            (t.layout().sizes.to_vec(), t.layout().strides.to_vec(), t.layout().offset, at)
        }
    };
    inputs.values.iter().map(&mut one).collect()
}

fn shared(shape: &Shape) -> bool {
    let of = |i: usize| shape[i].3;
    (0..shape.len()).any(|i| of(i) != usize::MAX && (0..i).any(|j| of(j) == of(i)))
}

/// A program compiled for some strides and sharing of its inputs.
struct Variant {
    compiled: restride::Compiled,
    /// Idle instances.
    idle: Mutex<Vec<Idle>>,
    /// Whether a run writes the state.
    writes: bool,
    /// Whether a run may give a tensor of the state other sizes or strides.
    reshapes: bool,
}

struct Idle {
    instance: restride::Instance,
    /// Which of the states it has.
    generation: u64,
    /// Runs that it did.
    runs: u64,
}

/// A compiled program with one state, for any number of threads. Runs that write the state take turns; others run beside each other.
#[pyclass(frozen, module = "restride._restride")]
pub struct Compiled {
    program: restride::Program,
    options: CompileOptions,
    threads: usize,
    general: Mutex<Option<Result<Arc<Variant>, restride::Error>>>,
    variants: Mutex<Vec<(Shape, Arc<Variant>)>>,
    state: Mutex<Option<(State, u64)>>,
    turn: Mutex<()>,
    runs: AtomicU64,
}

impl Compiled {
    /// Compiles at the first use.
    pub fn new(program: restride::Program, options: CompileOptions, threads: usize) -> Compiled {
        Compiled {
            program,
            options,
            threads,
            general: Mutex::new(None),
            variants: Mutex::new(Vec::new()),
            state: Mutex::new(None),
            turn: Mutex::new(()),
            runs: AtomicU64::new(0),
        }
    }

    fn expected(&self) -> Vec<ExpectedInput> {
        ExpectedInput::all(&self.program)
    }

    fn variant(&self, inputs: Option<&Inputs>) -> restride::Result<Arc<Variant>> {
        let compiled = restride::Compiled::new(self.program.clone(), inputs, &self.options)?;
        let signature = &compiled.functional().signature;
        let is_state = |i: usize| compiled.functional().weight_name(i).is_some();
        let written = |i: usize| match &signature.inputs[i].kind {
            restride_ir::InputKind::Storage(members) => members.iter().any(|m| is_state(*m)),
            _ => is_state(i),
        };
        let writes = signature
            .outputs
            .iter()
            .any(|o| matches!(o.kind, OutputKind::Mutation(i) | OutputKind::Metadata(i) if written(i)));
        let reshapes = signature.outputs.iter().any(|o| matches!(o.kind, OutputKind::Metadata(i) if written(i)));
        Ok(Arc::new(Variant { compiled, idle: Mutex::default(), writes, reshapes }))
    }

    /// The program compiled for any inputs in the declared strides.
    fn general(&self) -> restride::Result<Arc<Variant>> {
        let mut general = lock(&self.general);
        general.get_or_insert_with(|| self.variant(None)).clone()
    }

    /// The program compiled for these inputs: their strides, and who shares memory.
    fn special(&self, shape: Shape, inputs: &Inputs) -> restride::Result<Arc<Variant>> {
        if let Some((_, found)) = lock(&self.variants).iter().find(|(s, _)| *s == shape) {
            return Ok(found.clone());
        }
        let made = self.variant(Some(inputs))?;
        let mut all = lock(&self.variants);
        if all.len() >= VARIANTS {
            all.remove(0);
        }
        all.push((shape, made.clone()));
        Ok(made)
    }

    /// The variant for inputs, as far as it is known without a run.
    fn known(&self, shape: &Shape) -> Option<Arc<Variant>> {
        lock(&self.variants).iter().find(|(s, _)| s == shape).map(|v| v.1.clone())
    }

    fn state(&self) -> restride::Result<(State, u64)> {
        let mut state = lock(&self.state);
        match &*state {
            Some(s) => Ok(s.clone()),
            None => Ok(state.insert((State::new(&self.program)?, 0)).clone()),
        }
    }

    fn generation(&self) -> restride::Result<u64> {
        match &*lock(&self.state) {
            Some(s) => Ok(s.1),
            None => Ok(0),
        }
    }

    fn change(&self, to: State) {
        let mut state = lock(&self.state);
        let next = state.as_ref().map_or(0, |s| s.1) + 1;
        *state = Some((to, next));
    }

    fn run_variant(&self, variant: &Variant, inputs: &Inputs, options: &RunOptions) -> restride::Result<Outputs> {
        let _turn = variant.writes.then(|| lock(&self.turn));
        let idle = lock(&variant.idle).pop();
        let generation = self.generation()?;
        let mut own = match idle {
            Some(idle) => idle,
            None => Idle { instance: variant.compiled.instance()?, generation: u64::MAX, runs: 0 },
        };
        if own.generation != generation {
            let (state, generation) = self.state()?;
            own.instance.set_state(state);
            own.generation = generation;
        }
        // Every run of the program draws anew, whichever instance it has.
        let call = self.runs.fetch_add(1, Ordering::Relaxed).wrapping_sub(own.runs);
        let outputs = own.instance.run(inputs, &RunOptions { call, ..options.clone() }).and_then(pinned);
        if outputs.is_ok() {
            own.runs += 1;
            if variant.reshapes {
                self.change(own.instance.state().clone());
                own.generation = self.generation()?;
            }
        }
        let mut idle = lock(&variant.idle);
        if idle.len() < IDLE {
            idle.push(own);
        }
        outputs
    }

    fn run_inputs(&self, inputs: &Inputs, options: &RunOptions) -> restride::Result<(Arc<Variant>, Outputs)> {
        let shape = shape(inputs);
        if let Some(variant) = self.known(&shape) {
            let outputs = self.run_variant(&variant, inputs, options)?;
            return Ok((variant, outputs));
        }
        let first = match (shared(&shape), self.general()) {
            (false, Ok(variant)) => match self.run_variant(&variant, inputs, options) {
                Ok(outputs) => return Ok((variant, outputs)),
                // Nothing is written then. Other strides are a matter of compiling.
                Err(e) if e.kind == ErrorKind::Inputs => e,
                Err(e) => return Err(e),
            },
            (_, Err(e)) => e,
            (true, _) => restride::Error::new(ErrorKind::Inputs, "the inputs share memory"),
        };
        let special = self.special(shape, inputs).map_err(|e| match first.kind {
            ErrorKind::Inputs if !first.what.starts_with("the inputs share") => first,
            _ => e,
        })?;
        let outputs = self.run_variant(&special, inputs, options)?;
        Ok((special, outputs))
    }

    /// Placement and plan for inputs, or for those of the file, or for the declared sizes.
    fn prepared(&self, objects: Option<Vec<Bound<'_, PyAny>>>, py: Python<'_>) -> PyResult<restride::Prepared> {
        let given = objects.map(|o| inputs(&o, &self.expected())).transpose()?;
        py.detach(|| {
            let given = match given {
                Some(given) => Some(given),
                None => Inputs::from_samples(&self.program).transpose()?,
            };
            let variant = match &given {
                Some(given) => match (self.general(), shared(&shape(given))) {
                    (Ok(variant), false) if variant.compiled.prepare(given).is_ok() => variant,
                    _ => self.special(shape(given), given)?,
                },
                None => self.general()?,
            };
            let given = match given {
                Some(given) => given,
                None => restride::declared_inputs(variant.compiled.functional())?,
            };
            variant.compiled.prepare(&given)
        })
        .or_raise()
    }
}

#[pymethods]
impl Compiled {
    /// Runs on leaves, and gives the leaves of the result and the gradients by name.
    #[pyo3(signature = (objects, like, seed=0))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        objects: Vec<Bound<'py, PyAny>>,
        like: &Bound<'py, PyAny>,
        seed: u64,
    ) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyDict>)> {
        let like = Like::of(like)?;
        let given = inputs(&objects, &self.expected())?;
        let options = RunOptions { seed, threads: self.threads, ..RunOptions::default() };
        let (variant, outputs) = py.detach(|| as_rank(|| self.run_inputs(&given, &options))).or_raise()?;
        results(py, variant.compiled.functional(), &outputs, &like)
    }

    /// Compiles for inputs, so that the first run with their sizes only runs.
    #[pyo3(signature = (objects=None))]
    fn prepare(&self, py: Python<'_>, objects: Option<Vec<Bound<'_, PyAny>>>) -> PyResult<()> {
        self.prepared(objects, py).map(drop)
    }

    #[getter]
    fn threads(&self) -> usize {
        self.threads
    }

    /// The program without mutation.
    fn functional(&self) -> PyResult<crate::program::Program> {
        let general = self.general().or_raise()?;
        Ok(crate::program::Program { program: general.compiled.functional().clone() })
    }

    /// The memory plan as JSON.
    #[pyo3(signature = (objects=None))]
    fn plan(&self, py: Python<'_>, objects: Option<Vec<Bound<'_, PyAny>>>) -> PyResult<String> {
        Ok(restride_cli::plan_json(&self.prepared(objects, py)?.plan_table()).to_string())
    }

    /// Numbers of compiling as JSON and as text.
    #[pyo3(signature = (objects=None))]
    fn report(&self, py: Python<'_>, objects: Option<Vec<Bound<'_, PyAny>>>) -> PyResult<(String, String)> {
        let report = self.prepared(objects, py)?.report();
        Ok((restride_cli::report_json(&report).to_string(), restride_cli::report_text(&report)))
    }

    /// The page of `restride compile --report`.
    #[pyo3(signature = (objects=None))]
    fn page(&self, py: Python<'_>, objects: Option<Vec<Bound<'_, PyAny>>>) -> PyResult<String> {
        let prepared = self.prepared(objects, py)?;
        let report: Report = prepared.report();
        Ok(restride_cli::report_page(&Overview { report, ..prepared.overview() }))
    }

    /// Decisions about memory as JSON and as text; about one node, or all.
    #[pyo3(signature = (objects=None, node=None, all=false))]
    fn explain(
        &self,
        py: Python<'_>,
        objects: Option<Vec<Bound<'_, PyAny>>>,
        node: Option<&str>,
        all: bool,
    ) -> PyResult<(String, String)> {
        let mut found = self.prepared(objects, py)?.explain();
        if let Some(name) = node {
            let general = self.general().or_raise()?;
            found = found.about(name, &[&self.program, general.compiled.functional()]).or_raise()?;
        }
        let text = restride_cli::explanation_text(&found, node, all || node.is_some());
        Ok((restride_cli::explanation_json(&found).to_string(), text))
    }

    /// The placed program as text.
    #[pyo3(signature = (objects=None))]
    fn show(&self, py: Python<'_>, objects: Option<Vec<Bound<'_, PyAny>>>) -> PyResult<String> {
        Ok(self.prepared(objects, py)?.show())
    }

    /// Writes the functional program with its plan.
    #[pyo3(signature = (path, objects=None))]
    fn save(&self, py: Python<'_>, path: PathBuf, objects: Option<Vec<Bound<'_, PyAny>>>) -> PyResult<()> {
        let given = match objects {
            Some(objects) => inputs(&objects, &self.expected())?,
            None => match Inputs::from_samples(&self.program) {
                Some(samples) => samples.or_raise()?,
                None => restride::declared_inputs(&self.program).or_raise()?,
            },
        };
        let variant = self.special(shape(&given), &given).or_raise()?;
        py.detach(|| variant.compiled.save(&given, &path)).or_raise()
    }

    fn state_names(&self) -> PyResult<Vec<String>> {
        Ok(self.state().or_raise()?.0.iter().map(|(n, _)| n.to_string()).collect())
    }

    /// A tensor of the state: a copy, or its memory.
    fn state_get<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        like: &Bound<'py, PyAny>,
        copy: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _turn = wait(py, &self.turn);
        let (state, _) = self.state().or_raise()?;
        state_tensor(py, &state, name, like, copy)
    }

    fn state_set(&self, py: Python<'_>, name: &str, object: Bound<'_, PyAny>) -> PyResult<()> {
        let _turn = wait(py, &self.turn);
        let (state, _) = self.state().or_raise()?;
        set_state(&state, name, object)
    }

    /// Back to the state that the program was exported with.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        let _turn = wait(py, &self.turn);
        self.change(State::new(&self.program).or_raise()?);
        Ok(())
    }

    /// An arena and a state of its own.
    fn instance(&self) -> PyResult<Instance> {
        let variant = self.general().or_raise()?;
        let instance = variant.compiled.instance().or_raise()?;
        Ok(Instance { compiled: variant.compiled.clone(), threads: self.threads, instance: Mutex::new(Some(instance)) })
    }
}

fn unknown(state: &State, name: &str) -> PyErr {
    let known: Vec<&str> = state.iter().map(|(n, _)| &**n).collect();
    PyKeyError::new_err(format!("the state has no tensor {name:?}; it has {}", known.join(", ")))
}

fn state_tensor<'py>(
    py: Python<'py>,
    state: &State,
    name: &str,
    like: &Bound<'py, PyAny>,
    copy: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let found = state.get(name).ok_or_else(|| unknown(state, name))?;
    let own = if copy { copied(found) } else { found.clone() };
    tensor(py, &own, &Like::of(like)?)
}

/// Writes a tensor of the state, where it is.
fn set_state(state: &State, name: &str, object: Bound<'_, PyAny>) -> PyResult<()> {
    let to = state.get(name).ok_or_else(|| unknown(state, name))?;
    let from = inputs(&[object], &[ExpectedInput::any(name)])?;
    let Some(from) = from.values[0].tensor() else {
        return Err(inputs_error(format!("{name} must be a tensor")));
    };
    if from.dtype() != to.dtype() || from.layout().sizes != to.layout().sizes {
        let (have, want) = (from.layout(), to.layout());
        return Err(inputs_error(format!(
            "{name} is {}{:?}, and {}{:?} is given",
            to.dtype(),
            &want.sizes[..],
            from.dtype(),
            &have.sizes[..]
        )));
    }
    restride::copy_into(to, from).map_err(restride::Error::from).or_raise()
}

fn results<'py>(
    py: Python<'py>,
    program: &restride::Program,
    outputs: &Outputs,
    like: &Like,
) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyDict>)> {
    let values = PyList::empty(py);
    for v in &outputs.values {
        values.append(value(py, v, like)?)?;
    }
    let gradients = PyDict::new(py);
    for (i, t) in &outputs.gradients {
        let name = restride::files::gradient_name(program, *i);
        gradients.set_item(name.strip_prefix("grad.").unwrap_or(&name), tensor(py, t, like)?)?;
    }
    Ok((values, gradients))
}

/// An arena and a state of its own. One thread at a time runs it; others wait.
#[pyclass(frozen, module = "restride._restride")]
pub struct Instance {
    compiled: restride::Compiled,
    threads: usize,
    /// `None` once a session has it.
    instance: Mutex<Option<restride::Instance>>,
}

fn taken() -> PyErr {
    PyRuntimeError::new_err("a session has this instance: make another one with instance()")
}

#[pymethods]
impl Instance {
    #[pyo3(signature = (objects, like, seed=0))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        objects: Vec<Bound<'py, PyAny>>,
        like: &Bound<'py, PyAny>,
        seed: u64,
    ) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyDict>)> {
        let like = Like::of(like)?;
        let given = inputs(&objects, &ExpectedInput::all(self.compiled.functional()))?;
        let options = RunOptions { seed, threads: self.threads, ..RunOptions::default() };
        let outputs =
            py.detach(|| as_rank(|| lock(&self.instance).as_mut().map(|i| i.run(&given, &options).and_then(pinned))));
        let outputs = outputs.ok_or_else(taken)?.or_raise()?;
        results(py, self.compiled.functional(), &outputs, &like)
    }

    #[getter]
    fn arena_bytes(&self, py: Python<'_>) -> PyResult<i64> {
        py.detach(|| lock(&self.instance).as_ref().map(restride::Instance::arena_bytes)).ok_or_else(taken)
    }

    /// Takes the largest arena that any sizes need.
    fn reserve(&self, py: Python<'_>) -> PyResult<i64> {
        py.detach(|| lock(&self.instance).as_mut().map(restride::Instance::reserve)).ok_or_else(taken)?.or_raise()
    }

    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| lock(&self.instance).as_mut().map(restride::Instance::reset)).ok_or_else(taken)?.or_raise()
    }

    fn state_names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let names = |i: &restride::Instance| i.state().iter().map(|(n, _)| n.to_string()).collect();
        py.detach(|| lock(&self.instance).as_ref().map(names)).ok_or_else(taken)
    }

    fn state_get<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        like: &Bound<'py, PyAny>,
        copy: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let guard = wait(py, &self.instance);
        state_tensor(py, guard.as_ref().ok_or_else(taken)?.state(), name, like, copy)
    }

    fn state_set(&self, py: Python<'_>, name: &str, object: Bound<'_, PyAny>) -> PyResult<()> {
        let guard = wait(py, &self.instance);
        set_state(guard.as_ref().ok_or_else(taken)?.state(), name, object)
    }

    /// Binds the instance to inputs and outputs, for many runs.
    #[pyo3(signature = (objects, outputs=None, seed=0))]
    fn session(
        &self,
        objects: Vec<Bound<'_, PyAny>>,
        outputs: Option<Vec<Option<Bound<'_, PyAny>>>>,
        seed: u64,
    ) -> PyResult<Session> {
        let given = inputs(&objects, &ExpectedInput::all(self.compiled.functional()))?;
        let mut results: Vec<Option<RawTensor>> = Vec::new();
        for (i, output) in outputs.unwrap_or_default().into_iter().enumerate() {
            let one = output.map(|o| inputs(&[o], &[ExpectedInput::any(&format!("output.{i}"))])).transpose()?;
            results.push(one.and_then(|i| i.values[0].tensor().cloned()));
        }
        let instance = lock(&self.instance).take().ok_or_else(taken)?;
        let options = RunOptions { seed, threads: self.threads, ..RunOptions::default() };
        let session = instance.session(&given, &results, &options).or_raise()?;
        Ok(Session { compiled: self.compiled.clone(), session: Mutex::new(session) })
    }
}

/// An instance bound to memory: a run reads the inputs' and writes the outputs'.
#[pyclass(frozen, module = "restride._restride")]
pub struct Session {
    compiled: restride::Compiled,
    session: Mutex<restride::Session>,
}

#[pymethods]
impl Session {
    fn run(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| as_rank(|| lock(&self.session).run())).map_err(|e| raise(&e))
    }

    /// The outputs, which every run leaves in the same memory.
    fn outputs<'py>(
        &self,
        py: Python<'py>,
        like: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyDict>)> {
        let like = Like::of(like)?;
        let guard = wait(py, &self.session);
        results(py, self.compiled.functional(), guard.outputs(), &like)
    }

    fn state_get<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        like: &Bound<'py, PyAny>,
        copy: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let guard = wait(py, &self.session);
        state_tensor(py, guard.state(), name, like, copy)
    }

    fn state_names(&self, py: Python<'_>) -> Vec<String> {
        py.detach(|| lock(&self.session).state().iter().map(|(n, _)| n.to_string()).collect())
    }
}
