//! Graphs of `torch.compile`: called with tensors of PyTorch at the cost of a few hundred nanoseconds each.
//!
//! An argument's memory is read by DLPack's exchange functions, and results are computed into tensors that PyTorch makes. A session per
//! set of sizes stays bound, so that a call changes addresses only.

use crate::arrays::{foreign, scalar};
use crate::dlpack::{DLTensor, ExchangeApi, exchange_api, memory_of, settled};
use crate::engine::as_rank;
use crate::errors::{OrRaise, raise};
use crate::forms::{BaseForm, FreshForm, InputForm, OutputForm, number};
use crate::held::{Gone, HeldWeight, sample, version};
use crate::results::{LEAST, ResultMemory};
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyList, PyTuple};
use restride::{
    Addresses, Bytes, CompileOptions, Error, ErrorKind, Inputs, Layout, OpenOptions, RawTensor, RunOptions, RunValue,
    Session, State, Storage,
};
use restride_ir::{AliasRoot, InputKind, OutputKind};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Sets of sizes whose sessions are kept; the oldest goes first.
const SESSIONS: usize = 8;

/// Changes of weights after which they are packed no more.
const REPACKS: usize = 4;

/// Element types of tensors, by PyTorch's names.
const DTYPES: &str = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128";

/// A graph of `torch.compile`.
#[pyclass(frozen, module = "restride._restride")]
pub struct Graph {
    program: restride::Program,
    options: CompileOptions,
    threads: usize,
    /// Arguments that are weights, by position, with their names in the program.
    weights: Vec<(usize, Arc<str>)>,
    /// Whether the argument at each position is a weight; those behind the last are none.
    is_weight: Vec<bool>,
    /// `torch.Tensor`'s functions of DLPack.
    api: &'static ExchangeApi,
    tensor: Py<PyAny>,
    /// Makes an empty tensor of sizes, strides and element type.
    empty: Py<PyAny>,
    /// Makes a view of sizes, strides and offset.
    as_strided: Py<PyAny>,
    /// Makes another tensor on a tensor's storage, of sizes, strides and offset, in older releases of PyTorch not there.
    reinterpret: Option<Py<PyAny>>,
    /// PyTorch's element types, by their names.
    dtypes: BTreeMap<String, Py<PyAny>>,
    bound: Mutex<BoundGraph>,
}

/// What changes from call to call.
#[derive(Default)]
struct BoundGraph {
    compiled: Option<restride::Compiled>,
    /// The weights, as the last call gave them; in the order of `Graph::weights`.
    held: Vec<HeldWeight>,
    state: State,
    sessions: Vec<BoundSession>,
    /// Memory of large results, where calls follow on one another as training steps do.
    results: Option<ResultMemory>,
    repacked: usize,
    /// Weights change too often to be packed: they are inputs like all others.
    loose: bool,
}

/// A session, with how its inputs are and how its outputs are made.
struct BoundSession {
    session: Session,
    /// What the arguments that are no weights have to be.
    inputs: Vec<InputForm>,
    outputs: Vec<OutputForm>,
    /// Memory that outputs are views of.
    bases: Vec<BaseForm>,
}

impl Graph {
    /// The argument's memory.
    fn lend(&self, argument: &Bound<'_, PyAny>) -> PyResult<DLTensor> {
        let mut tensor = DLTensor::EMPTY;
        let Some(lend) = self.api.lend else { return Err(PyRuntimeError::new_err("PyTorch lends no tensors")) };
        // SAFETY: the argument is a tensor of PyTorch, whose functions these are.
        match unsafe { lend(argument.as_ptr().cast(), &raw mut tensor) } {
            0 => Ok(tensor),
            _ => Err(PyErr::fetch(argument.py())),
        }
    }

    /// The memory of an argument that has the elements that PyTorch shows: a copy takes the place of a tensor that is conjugated or
    /// negated lazily, since its memory has other elements.
    fn lend_elements(&self, argument: &mut Bound<'_, PyAny>) -> PyResult<DLTensor> {
        let lent = self.lend(argument)?;
        if !lent.may_be_lazy() {
            return Ok(lent);
        }
        match settled(argument)? {
            Some(plain) => *argument = plain,
            None => return Ok(lent),
        }
        self.lend(argument)
    }

    fn is_tensor(&self, argument: &Bound<'_, PyAny>) -> bool {
        // SAFETY: both are types, which live.
        unsafe { ffi::PyType_IsSubtype(ffi::Py_TYPE(argument.as_ptr()), self.tensor.as_ptr().cast()) != 0 }
    }

    /// The argument as an input.
    fn input(&self, argument: &Bound<'_, PyAny>, lent: Option<&DLTensor>, position: usize) -> PyResult<RunValue> {
        let Some(lent) = lent else { return number(argument, position) };
        let (start, bytes, dtype, layout) = memory_of(lent, &format!("argument {position}"))?;
        let raw = RawTensor::new(foreign(start, bytes, true, Vec::new()), dtype, layout);
        let raw = raw.ok_or_else(|| PyRuntimeError::new_err(format!("argument {position} is not aligned")))?;
        Ok(RunValue::Tensor(raw))
    }

    /// Whether the weights are those of the last call, unchanged.
    fn same_weights(&self, bound: &BoundGraph, args: &Bound<'_, PyList>) -> PyResult<bool> {
        if bound.held.len() != self.weights.len() {
            return Ok(false);
        }
        for (held, (position, _)) in bound.held.iter().zip(&self.weights) {
            let argument = args.get_item(*position)?;
            if held.object != argument.as_ptr().addr() || held.gone.load(Ordering::Acquire) {
                return Ok(false);
            }
            let lent = self.lend(&argument)?;
            let same = held.start == lent.start().addr() && Some(held.version) == version(&argument);
            if !same || held.sample != sample(&lent) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Takes the weights of a call as the program's state. `false` if PyTorch counts no writes of one.
    fn hold(&self, bound: &mut BoundGraph, args: &Bound<'_, PyList>) -> PyResult<bool> {
        let py = args.py();
        let mut state = State::default();
        let mut held = Vec::with_capacity(self.weights.len());
        for (position, name) in &self.weights {
            let argument = args.get_item(*position)?;
            let Some(version) = version(&argument) else { return Ok(false) };
            let lent = self.lend(&argument)?;
            let (start, bytes, dtype, layout) = memory_of(&lent, &format!("argument {position}"))?;
            let memory = match bytes {
                0 => Bytes::copy_of(&[]),
                // SAFETY: the weight's tensor has these bytes for as long as runs are given the same tensor, which is compared
                // before each of them. PyTorch's users write weights between runs; then this storage is replaced before it is
                // read again.
                _ => unsafe { Bytes::foreign(start, bytes, || {}) },
            };
            let raw = RawTensor::new(Storage::from_bytes(memory), dtype, layout);
            let raw = raw.ok_or_else(|| PyRuntimeError::new_err(format!("argument {position} is not aligned")))?;
            state.set(name.clone(), raw);
            let gone = Arc::new(AtomicBool::new(false));
            let note = Bound::new(py, Gone { gone: gone.clone() })?;
            let reference = py.import("weakref")?.getattr("ref")?.call1((&argument, note))?;
            held.push(HeldWeight {
                object: argument.as_ptr().addr(),
                gone,
                _reference: reference.unbind(),
                start: start.addr(),
                version,
                sample: sample(&lent),
            });
        }
        (bound.held, bound.state) = (held, state);
        bound.sessions.clear();
        Ok(true)
    }

    /// The program compiled, with weights as state or as inputs.
    fn compiled(&self, loose: bool) -> restride::Result<restride::Compiled> {
        let mut program = self.program.clone();
        if !loose {
            let users: Vec<usize> = restride::user_inputs(&program).map(|(i, _)| i).collect();
            for (position, name) in &self.weights {
                program.signature.inputs[users[*position]].kind = InputKind::Parameter(name.clone());
            }
        }
        restride::Compiled::new(program, None, &self.options)
    }

    /// A session for inputs.
    fn open(&self, py: Python<'_>, bound: &BoundGraph, given: &Inputs) -> PyResult<BoundSession> {
        let inputs = given.values.iter().map(InputForm::of).collect();
        let Some(compiled) = bound.compiled.clone() else { return Err(PyRuntimeError::new_err("not compiled")) };
        let options = RunOptions { threads: self.threads, ..RunOptions::default() };
        let state = (!bound.loose).then(|| bound.state.clone());
        let session = py.detach(|| {
            let mut instance = compiled.instance()?;
            if let Some(state) = state {
                instance.set_state(state);
            }
            instance.session(given, &[], &options)
        });
        // Nothing has run: whoever calls may run the graph otherwise.
        let session = session.or_raise().inspect_err(|e| {
            let _ = e.value(py).setattr("unprepared", true);
        })?;
        let program = compiled.functional();
        let signature = &program.signature;
        let is_user = |i: usize| matches!(signature.inputs[i].kind, InputKind::User(_));
        // Positions of the program's inputs among the arguments.
        let taken: Vec<usize> = (0..signature.inputs.len())
            .filter(|i| !matches!(signature.inputs[*i].kind, InputKind::Storage(_)))
            .collect();
        let mut outputs = Vec::new();
        let dtype = |d: restride::DType| {
            let known = self.dtypes.get(d.torch_name()).map(|d| d.clone_ref(py));
            known.ok_or_else(|| PyRuntimeError::new_err(format!("PyTorch has no element type {d}")))
        };
        let fresh = |t: &RawTensor| {
            let (sizes, strides) = sizes_and_strides(py, t.layout())?;
            match t.layout().offset {
                0 => Ok(FreshForm {
                    arguments: (sizes, strides, dtype(t.dtype())?).into_pyobject(py)?.unbind(),
                    layout: t.layout().clone(),
                    own: t.dtype(),
                    bytes: t.layout().byte_range(t.dtype().size()).map_or(0, |r| r.end),
                }),
                _ => Err(unknown_memory()),
            }
        };
        let all = signature.outputs.iter().zip(&program.graph().outputs);
        let user = all.filter(|(o, _)| matches!(o.kind, OutputKind::User | OutputKind::Loss));
        let layout = |t: &RawTensor| t.layout().clone();
        for ((spec, result), value) in user.zip(&session.outputs().values) {
            outputs.push(match (&spec.alias, value) {
                (None, RunValue::Tensor(t)) => OutputForm::Fresh(fresh(t)?),
                (Some(alias), RunValue::Tensor(t)) => match alias.root {
                    AliasRoot::Base(at) => OutputForm::OfBase {
                        base: signature.outputs[..at].iter().filter(|o| matches!(o.kind, OutputKind::Base)).count(),
                        dtype: dtype(t.dtype())?,
                        own: t.dtype(),
                        layout: layout(t),
                        arguments: {
                            let (sizes, strides) = sizes_and_strides(py, t.layout())?;
                            (sizes, strides, t.layout().offset).into_pyobject(py)?.unbind()
                        },
                    },
                    AliasRoot::Input(i) if is_user(i) || bound.loose || taken.contains(&i) => {
                        let argument = taken.iter().position(|t| *t == i).unwrap_or(i);
                        let base = signature.inputs[i].value;
                        match program.graph().values[base].ty.tensor() {
                            _ if result.values().any(|v| *v == base) => OutputForm::Argument { argument },
                            Some(b) if b.dtype == t.dtype() => OutputForm::View { argument, layout: layout(t) },
                            _ => OutputForm::Retyped {
                                argument,
                                dtype: dtype(t.dtype())?,
                                own: t.dtype(),
                                layout: layout(t),
                            },
                        }
                    }
                    _ => return Err(unknown_memory()),
                },
                (_, RunValue::Scalar(s)) => OutputForm::Number(*s),
                _ => OutputForm::Nothing,
            });
        }
        let bases = session.bases().or_raise()?;
        let mut bases = (bases.iter().filter_map(RunValue::tensor))
            .map(|t| Ok(BaseForm { form: fresh(t)?, shown: None }))
            .collect::<PyResult<Vec<_>>>()?;
        // The one view of a base that shows all of it is made as a tensor of its own: PyTorch sees the same storage.
        for (at, base) in bases.iter_mut().enumerate() {
            let mut views = outputs
                .iter_mut()
                .enumerate()
                .filter(|(_, o)| matches!(o, OutputForm::OfBase { base, .. } if *base == at));
            let (Some((position, OutputForm::OfBase { .. })), None) = (views.next(), views.next()) else { continue };
            let Some(RunValue::Tensor(t)) = session.outputs().values.get(position) else { continue };
            if t.layout().offset == 0 && t.layout().byte_range(t.dtype().size()).map(|r| r.end) == Some(base.form.bytes)
            {
                outputs[position] = OutputForm::Whole(fresh(t)?);
                base.shown = Some(position);
            }
        }
        Ok(BoundSession { session, inputs, outputs, bases })
    }

    /// A tensor for a result, and where its first element is.
    fn make<'py>(
        &self,
        py: Python<'py>,
        form: &FreshForm,
        results: Option<&mut ResultMemory>,
    ) -> PyResult<(Bound<'py, PyAny>, *mut u8)> {
        let empty = || self.empty.bind(py).call1(form.arguments.bind(py));
        let fresh = match results {
            Some(results) if form.bytes >= LEAST => results.take(py, (form.own, &form.layout), empty)?,
            _ => empty()?,
        };
        let start = self.lend(&fresh)?.start();
        Ok((fresh, start))
    }

    /// A tensor on a tensor's storage, from a place in it on, in elements of its own type.
    fn on_storage_of<'py>(
        &self,
        base: &Bound<'py, PyAny>,
        dtype: &Py<PyAny>,
        layout: &Layout,
        offset: i64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = base.py();
        let storage = base.call_method0(intern!(py, "untyped_storage"))?;
        let (sizes, strides) = sizes_and_strides(py, layout)?;
        let fresh = self.empty.bind(py).call1(((0,), (1,), dtype.bind(py)))?;
        let set = fresh.call_method1(intern!(py, "set_"), (storage, offset, sizes, strides))?;
        // Without the write that PyTorch counts.
        set.getattr(intern!(py, "data"))
    }
}

/// Sizes and strides, as PyTorch takes them.
fn sizes_and_strides<'py>(py: Python<'py>, layout: &Layout) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyTuple>)> {
    Ok((PyTuple::new(py, &layout.sizes)?, PyTuple::new(py, &layout.strides)?))
}

impl BoundSession {
    /// Frees the memory that the session made for outputs: runs are given theirs.
    fn leave_own_memory(&mut self, inputs: &Inputs, memory: &[Option<*mut u8>]) -> restride::Result<()> {
        let outputs = self.outputs.iter().map(|form| match form {
            OutputForm::Fresh(form) => Some(form),
            _ => None,
        });
        let bases = self.bases.iter().map(|base| Some(&base.form));
        let given = outputs.chain(bases).zip(memory).map(|(form, first)| {
            let (form, first) = (form?, (*first)?);
            RawTensor::new(foreign(first, form.bytes, true, Vec::new()), form.own, form.layout.clone())
        });
        let given: Vec<Option<RawTensor>> = given.collect();
        self.session.rebind(inputs, &given)
    }
}

#[pymethods]
impl Graph {
    /// A graph from the bytes of a `.pt2`. `weights` are positions of arguments that stay the same from call to call.
    #[new]
    #[pyo3(signature = (data, weights, threads, *, fold=true, check=true))]
    fn new(
        py: Python<'_>,
        data: &[u8],
        weights: Vec<usize>,
        threads: usize,
        fold: bool,
        check: bool,
    ) -> PyResult<Graph> {
        let torch = py.import("torch")?;
        let tensor = torch.getattr("Tensor")?;
        let api = exchange_api(&tensor).filter(|a| a.lend.is_some());
        let api =
            api.ok_or_else(|| PyRuntimeError::new_err("this PyTorch does not lend tensors by DLPack 1: upgrade it"))?;
        let bytes = Bytes::copy_of(data);
        let program = py.detach(|| restride::open_bytes(&bytes, &OpenOptions::default())).or_raise()?;
        let named = |position: usize| {
            let name = restride::user_inputs(&program).nth(position).map(|(_, n)| n.clone());
            name.map(|n| (position, n))
                .ok_or_else(|| PyRuntimeError::new_err(format!("there is no argument {position}")))
        };
        let weights = weights.into_iter().map(named).collect::<PyResult<Vec<_>>>()?;
        let mut is_weight = vec![false; weights.iter().map(|w| w.0 + 1).max().unwrap_or(0)];
        weights.iter().for_each(|w| is_weight[w.0] = true);
        let mut dtypes = BTreeMap::new();
        for name in DTYPES.split(' ') {
            dtypes.insert(name.to_string(), torch.getattr(name)?.unbind());
        }
        // The functions of TorchInductor's generated code.
        let own = |name: &str| torch.getattr("_C")?.getattr("_dynamo")?.getattr("guards")?.getattr(name);
        let empty = own("_empty_strided_cpu").or_else(|_| torch.getattr("empty_strided"))?.unbind();
        let reinterpret = own("_reinterpret_tensor").ok().map(Bound::unbind);
        let as_strided = torch.getattr("as_strided")?.unbind();
        let options = CompileOptions { fold, ahead: true, check, ..CompileOptions::default() };
        let graph = Graph {
            program,
            options,
            threads,
            weights,
            is_weight,
            api,
            tensor: tensor.unbind(),
            empty,
            as_strided,
            reinterpret,
            dtypes,
            bound: Mutex::new(BoundGraph {
                results: if fold { None } else { ResultMemory::new(&torch) },
                ..BoundGraph::default()
            }),
        };
        let compiled = py.detach(|| graph.compiled(graph.weights.is_empty())).or_raise()?;
        if let Some(fault) = unfit(&compiled) {
            return Err(raise(&fault));
        }
        // Placed, planned and checked now, where sizes are known; in the first call with others.
        if compiled.functional().symbols.is_empty() && compiled.learns().is_empty() {
            py.detach(|| compiled.prepare(None)).map_err(|e| raise(&e))?;
        }
        let mut bound = graph.bound.lock().unwrap_or_else(PoisonError::into_inner);
        (bound.compiled, bound.loose) = (Some(compiled), graph.weights.is_empty());
        drop(bound);
        Ok(graph)
    }

    /// Runs on arguments, which are taken out of the list, and gives the results.
    #[pyo3(signature = (args, seed=None))]
    fn __call__<'py>(&self, args: &Bound<'py, PyList>, seed: Option<u64>) -> PyResult<Bound<'py, PyList>> {
        let py = args.py();
        // A run releases the interpreter's lock, which a waiting thread must not hold.
        let mut guard = self.bound.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let bound = &mut *guard;
        if !bound.loose && !self.same_weights(bound, args)? {
            if !bound.held.is_empty() {
                bound.repacked += 1;
            }
            if bound.repacked > REPACKS || !self.hold(bound, args)? {
                bound.compiled = Some(py.detach(|| self.compiled(true)).or_raise()?);
                (bound.loose, bound.held, bound.state) = (true, Vec::new(), State::default());
                bound.sessions.clear();
            }
        }
        let is_weight = |i: usize| !bound.loose && self.is_weight.get(i) == Some(&true);
        let mut arguments: Vec<Bound<'py, PyAny>> = args.iter().collect();
        // The memory of those that are tensors and no weights.
        let mut given: Vec<(usize, Option<DLTensor>)> = Vec::with_capacity(arguments.len());
        for (i, argument) in arguments.iter_mut().enumerate().filter(|(i, _)| !is_weight(*i)) {
            given.push((i, if self.is_tensor(argument) { Some(self.lend_elements(argument)?) } else { None }));
        }
        // The session whose sizes these are: the latest first.
        let mut chosen = None;
        for (at, one) in bound.sessions.iter().enumerate().rev() {
            let mut fits = one.inputs.len() == given.len();
            for (form, (i, lent)) in one.inputs.iter().zip(&given) {
                fits = fits && form.fits(&arguments[*i], lent.as_ref(), *i)?;
                if !fits {
                    break;
                }
            }
            if fits {
                chosen = Some(at);
                break;
            }
        }
        let mut opened = None;
        let at = match chosen {
            Some(at) => at,
            None => {
                let mut values = Vec::with_capacity(given.len());
                for (i, lent) in &given {
                    values.push(self.input(&arguments[*i], lent.as_ref(), *i)?);
                }
                let inputs = Inputs::new(values);
                let one = self.open(py, bound, &inputs)?;
                opened = Some(inputs);
                if bound.sessions.len() >= SESSIONS {
                    bound.sessions.remove(0);
                }
                bound.sessions.push(one);
                bound.sessions.len() - 1
            }
        };
        let one = &mut bound.sessions[at];
        let mut made: Vec<Option<Bound<'py, PyAny>>> = Vec::with_capacity(one.outputs.len() + one.bases.len());
        // Where results are: those that have memory of their own, and the bases of the others.
        let mut memory: Vec<Option<*mut u8>> = Vec::with_capacity(one.outputs.len() + one.bases.len());
        let mut results = bound.results.as_mut();
        if let Some(results) = &mut results {
            results.look(py)?;
        }
        for form in &one.outputs {
            let (fresh, start) = match form {
                OutputForm::Fresh(form) | OutputForm::Whole(form) => {
                    Some(self.make(py, form, results.as_deref_mut())?).unzip()
                }
                _ => (None, None),
            };
            made.push(fresh);
            memory.push(start);
        }
        for base in &one.bases {
            let (fresh, start) = match base.shown {
                Some(output) => (None, memory[output].take()),
                None => Some(self.make(py, &base.form, results.as_deref_mut())?).unzip(),
            };
            made.push(fresh);
            memory.push(start);
        }
        if let Some(seed) = seed {
            one.session.set_seed(seed);
        }
        if let Some(inputs) = opened {
            one.leave_own_memory(&inputs, &memory).or_raise()?;
        }
        let (users, places) = one.session.places();
        let first = |(i, (_, lent)): (&usize, &(usize, Option<DLTensor>))| Some((*i, lent.as_ref()?.start()));
        let inputs = users.iter().zip(&given).filter_map(first).collect();
        let outputs = places.zip(&memory).filter_map(|(i, start)| Some((i, (*start)?))).collect();
        // SAFETY: PyTorch's tensors, which live until this returns, have the types, sizes and strides that the session is bound to: this
        // was compared. Results were just made. That no other thread uses what is written is for the caller to see to, as with PyTorch.
        let at = unsafe { Addresses::promise(inputs, outputs) };
        let run = py.detach(|| as_rank(|| one.session.run_at(&at)));
        run.or_raise()?;
        let bases = made.split_off(one.outputs.len());
        let mut out = Vec::with_capacity(made.len());
        for (form, fresh) in one.outputs.iter().zip(made) {
            out.push(match (form, fresh) {
                (_, Some(fresh)) => fresh,
                (OutputForm::Fresh(_) | OutputForm::Whole(_), None) => return Err(unknown_memory()),
                (OutputForm::OfBase { base, dtype, own, layout, arguments }, _) => {
                    let tensor = bases.get(*base).and_then(Option::as_ref).ok_or_else(unknown_memory)?;
                    match &self.reinterpret {
                        Some(reinterpret) if one.bases[*base].form.own == *own => {
                            let (sizes, strides, offset) =
                                arguments
                                    .bind(py)
                                    .extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
                            reinterpret.bind(py).call1((tensor, sizes, strides, offset))?
                        }
                        _ => self.on_storage_of(tensor, dtype, layout, layout.offset)?,
                    }
                }
                (OutputForm::Argument { argument }, _) => args.get_item(*argument)?,
                (OutputForm::View { argument, layout }, _) => {
                    let base = &arguments[*argument];
                    let own: i64 = base.call_method0(intern!(py, "storage_offset"))?.extract()?;
                    let (sizes, strides) = sizes_and_strides(py, layout)?;
                    self.as_strided.bind(py).call1((base, sizes, strides, own + layout.offset))?
                }
                (OutputForm::Retyped { argument, dtype, own, layout }, _) => {
                    let base = &arguments[*argument];
                    let skipped: i64 = base.call_method0(intern!(py, "storage_offset"))?.extract()?;
                    let size: i64 = base.call_method0(intern!(py, "element_size"))?.extract()?;
                    self.on_storage_of(base, dtype, layout, skipped * size / own.size() as i64 + layout.offset)?
                }
                (OutputForm::Number(s), _) => scalar(py, *s)?,
                (OutputForm::Nothing, _) => py.None().into_bound(py),
            });
        }
        drop(guard);
        // SAFETY: a list, which is emptied as PyTorch's boxed calls do, so that arguments are freed as soon as they can be.
        unsafe { ffi::PyList_SetSlice(args.as_ptr(), 0, isize::MAX, std::ptr::null_mut()) };
        PyList::new(py, out)
    }

    /// Whether sizes are symbols, so that a call may meet new ones.
    #[getter]
    fn symbolic(&self) -> bool {
        !self.program.symbols.is_empty()
    }

    /// The sets of sizes that are bound.
    #[getter]
    fn sessions(&self, py: Python<'_>) -> usize {
        self.bound.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner).sessions.len()
    }

    /// Bytes of results that PyTorch has given back, kept for the next call.
    #[getter]
    fn kept(&self, py: Python<'_>) -> PyResult<usize> {
        let mut bound = self.bound.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        bound.results.as_mut().map_or(Ok(0), |results| results.kept(py))
    }

    /// The imported program as text.
    fn text(&self) -> String {
        restride::text::print(&self.program)
    }
}

fn unknown_memory() -> PyErr {
    PyRuntimeError::new_err(
        "a result is on memory of no argument and of no result; this is a fault of restride: report it",
    )
}

/// What a graph of `torch.compile` cannot have here.
fn unfit(compiled: &restride::Compiled) -> Option<Error> {
    let program = compiled.functional();
    let refuse = |what: &str| Some(Error::new(ErrorKind::Unsupported, what));
    if !compiled.learns().is_empty() {
        return Some(Error::new(
            ErrorKind::Unsupported,
            format!("sizes that data decide, at {}", compiled.learns().join(", ")),
        ));
    }
    for output in &program.signature.outputs {
        match output.kind {
            OutputKind::Metadata(_) => return refuse("an input whose sizes or strides are changed"),
            OutputKind::Mutation(i) if program.weight_name(i).is_some() => {
                return refuse("a weight that is written and declared as static");
            }
            _ => {}
        }
        if let Some(alias) = &output.alias
            && let AliasRoot::Input(i) = alias.root
        {
            let input = &program.signature.inputs[i];
            if program.graph().values[input.value].ty.tensor().is_none() || matches!(input.kind, InputKind::Storage(_))
            {
                return refuse("an output that is a view of memory that several arguments share");
            }
        }
    }
    None
}
