//! Inputs from Python's objects without a copy, and results as Python's objects.

use crate::dlpack::{LentMemory, capsule, exchange_api, lent, object, pinned, placed};
use crate::errors::{OrRaise, inputs_error};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyComplexMethods, PyDict, PyFloat, PyInt, PyString, PyTuple, PyType};
use restride::{DType, Error, Inputs, Layout, RawTensor, RunValue, Scalar, Storage};
use std::sync::Arc;

/// A tensor of restride: lends its memory by DLPack and by NumPy's array interface.
#[pyclass(frozen, module = "restride._restride")]
pub struct Tensor {
    /// The tensor.
    pub raw: RawTensor,
}

/// Type strings of NumPy's array interface.
const TYPES: [(DType, &str); 11] = [
    (DType::Bool, "|b1"),
    (DType::U8, "|u1"),
    (DType::I8, "|i1"),
    (DType::I16, "<i2"),
    (DType::I32, "<i4"),
    (DType::I64, "<i8"),
    (DType::F16, "<f2"),
    (DType::F32, "<f4"),
    (DType::F64, "<f8"),
    (DType::C64, "<c8"),
    (DType::C128, "<c16"),
];

#[pymethods]
impl Tensor {
    /// The element type, as PyTorch calls it.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.raw.dtype().torch_name()
    }

    /// The sizes.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.raw.layout().sizes.iter())
    }

    /// The strides, in elements.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.raw.layout().strides.iter())
    }

    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<Bound<'py, PyAny>>,
        max_version: Option<Bound<'py, PyAny>>,
        dl_device: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = (stream, dl_device);
        let major = max_version.map(|v| v.get_item(0)?.extract::<u32>()).transpose()?;
        if major.unwrap_or(0) < 1 {
            return Err(PyValueError::new_err("this tensor is lent by DLPack 1.0: pass max_version=(1, 0)"));
        }
        match copy {
            Some(true) => capsule(py, &copied(&self.raw)),
            _ => capsule(py, &self.raw),
        }
    }

    fn __dlpack_device__(&self) -> (i32, i32) {
        (1, 0)
    }

    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dtype = self.raw.dtype();
        let Some((_, name)) = TYPES.iter().find(|(d, _)| *d == dtype) else {
            let what = format!("NumPy has no {dtype}: take the tensor with torch.from_dlpack");
            return Err(pyo3::exceptions::PyAttributeError::new_err(what));
        };
        let start = pinned(&self.raw)?;
        let layout = self.raw.layout();
        let bytes = |s: &i64| s * dtype.size() as i64;
        let out = PyDict::new(py);
        out.set_item("version", 3)?;
        out.set_item("typestr", name)?;
        out.set_item("shape", PyTuple::new(py, layout.sizes.iter())?)?;
        out.set_item("strides", PyTuple::new(py, layout.strides.iter().map(bytes))?)?;
        out.set_item("data", (start.addr(), self.raw.storage().is_read_only()))?;
        Ok(out)
    }

    fn __repr__(&self) -> String {
        format!("restride.Tensor({}{})", self.raw.dtype(), self.raw.layout())
    }
}

/// The tensor on a copy of its storage.
pub fn copied(tensor: &RawTensor) -> RawTensor {
    let copy = Inputs::new([RunValue::Tensor(tensor.clone())]).deep_clone();
    copy.values.iter().find_map(RunValue::tensor).cloned().unwrap_or_else(|| tensor.clone())
}

/// Memory by NumPy's array interface, or `None`.
fn by_interface(given: &Bound<'_, PyAny>, what: &str) -> PyResult<Option<LentMemory>> {
    let Ok(interface) = given.getattr("__array_interface__") else { return Ok(None) };
    let name: String = interface.get_item("typestr")?.extract()?;
    let Some((dtype, _)) = TYPES.iter().find(|(_, t)| *t == name) else {
        return Err(inputs_error(format!("{what} has the element type {name}, which PyTorch does not have")));
    };
    let sizes: Vec<i64> = interface.get_item("shape")?.extract()?;
    let (start, read_only): (usize, bool) = interface.get_item("data")?.extract()?;
    let strides = interface.get_item("strides").ok().and_then(|s| s.extract::<Vec<i64>>().ok());
    let size = dtype.size() as i64;
    if strides.iter().flatten().any(|s| s % size != 0) {
        return Err(inputs_error(format!("{what} has strides that are no multiple of an element")));
    }
    let strides: Option<Vec<i64>> = strides.map(|s| s.iter().map(|s| s / size).collect());
    let start = std::ptr::with_exposed_provenance_mut::<u8>(start);
    let (start, bytes, dtype, layout) = placed(start, *dtype, &sizes, strides.as_deref(), what)?;
    let owner = crate::dlpack::Owner::Object(given.clone().unbind());
    Ok(Some(LentMemory { start, bytes, dtype, layout, read_only, owner }))
}

/// An input as it came.
enum Given {
    Memory(LentMemory),
    Own(RawTensor),
    Value(RunValue),
}

/// An input that a program takes.
pub struct ExpectedInput {
    /// The name in messages.
    what: String,
    /// Whether it is a number, a string or `None`, and no tensor.
    is_value: bool,
}

impl ExpectedInput {
    /// The user inputs of a program.
    pub fn all(program: &restride::Program) -> Vec<ExpectedInput> {
        let values = &program.graph().values;
        let of = |(i, name): (usize, &Arc<str>)| ExpectedInput {
            what: format!("input {name}"),
            is_value: values[program.signature.inputs[i].value].ty.tensor().is_none(),
        };
        restride::user_inputs(program).map(of).collect()
    }

    /// A tensor, or something else of a kind that is not known here.
    pub fn any(name: &str) -> ExpectedInput {
        ExpectedInput { what: format!("input {name}"), is_value: false }
    }
}

/// The Python number of a NumPy scalar, or `None` for other objects and for scalars that Python has no number for.
fn python_number<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    // An object can be a scalar of NumPy only where NumPy is loaded.
    let Ok(numpy) = object.py().import("sys")?.getattr("modules")?.get_item("numpy") else { return Ok(None) };
    if !object.is_instance(&numpy.getattr("generic")?)? {
        return Ok(None);
    }
    let own = object.call_method0("item")?;
    Ok((!own.is_exact_instance(&object.get_type())).then_some(own))
}

fn given(object: &Bound<'_, PyAny>, expected: &ExpectedInput) -> PyResult<Given> {
    let what = &expected.what;
    if object.is_none() {
        return Ok(Given::Value(RunValue::None));
    }
    if let Ok(b) = object.cast_exact::<PyBool>() {
        return Ok(Given::Value(RunValue::Scalar(Scalar::Bool(b.is_true()))));
    }
    if let Ok(own) = object.cast::<Tensor>() {
        return Ok(Given::Own(own.get().raw.clone()));
    }
    // Subclasses, such as members of an enumeration, may lend memory.
    if object.is_exact_instance_of::<PyInt>() || expected.is_value && object.is_instance_of::<PyInt>() {
        return Ok(Given::Value(RunValue::Scalar(Scalar::Int(object.extract()?))));
    }
    if object.is_exact_instance_of::<PyFloat>() || expected.is_value && object.is_instance_of::<PyFloat>() {
        return Ok(Given::Value(RunValue::Scalar(Scalar::Float(object.extract()?))));
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(Given::Value(RunValue::Str(text.to_cow()?.as_ref().into())));
    }
    if expected.is_value
        && let Some(own) = python_number(object)?
    {
        return given(&own, expected);
    }
    for (bit, name) in [("is_conj", "resolve_conj"), ("is_neg", "resolve_neg")] {
        if let Ok(method) = object.getattr(bit)
            && method.call0()?.is_truthy()?
        {
            return Err(inputs_error(format!("{what} is a lazy view ({bit}): pass its {name}()")));
        }
    }
    if let Some(memory) = lent(object, what)? {
        return Ok(Given::Memory(memory));
    }
    if let Some(memory) = by_interface(object, what)? {
        return Ok(Given::Memory(memory));
    }
    if let Ok(z) = object.cast::<PyComplex>() {
        let z = num_complex::Complex::new(z.real(), z.imag());
        return Ok(Given::Value(RunValue::Scalar(Scalar::Complex(z))));
    }
    let class = object.get_type().name()?.to_string();
    Err(PyTypeError::new_err(format!(
        "{what} is a {class}: pass an array that has __dlpack__ or __array_interface__, or a number"
    )))
}

/// Inputs on the memory of Python's objects. Objects whose memory overlaps share a storage, as views of one tensor do.
pub fn inputs(objects: &[Bound<'_, PyAny>], expected: &[ExpectedInput]) -> PyResult<Inputs> {
    let mut all = Vec::with_capacity(objects.len());
    for (i, object) in objects.iter().enumerate() {
        all.push(match expected.get(i) {
            Some(expected) => given(object, expected)?,
            None => given(object, &ExpectedInput::any(&i.to_string()))?,
        });
    }
    let mut ranges: Vec<(usize, usize, usize)> = Vec::new();
    for (i, g) in all.iter().enumerate() {
        if let Given::Memory(m) = g
            && m.bytes > 0
        {
            ranges.push((m.start.addr(), m.start.addr() + m.bytes, i));
        }
    }
    ranges.sort_unstable();
    // Runs of ranges that overlap.
    let mut group = vec![usize::MAX; all.len()];
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut end = 0;
    for (from, to, i) in ranges {
        if groups.is_empty() || from >= end {
            groups.push(Vec::new());
            end = to;
        }
        end = end.max(to);
        group[i] = groups.len() - 1;
        groups.last_mut().expect("pushed above").push(i);
    }
    let mut storages: Vec<Option<(usize, Storage)>> = vec![None; groups.len()];
    let mut values: Vec<Option<RunValue>> = (0..all.len()).map(|_| None).collect();
    let mut owners: Vec<Option<LentMemory>> = Vec::with_capacity(all.len());
    for (i, g) in all.into_iter().enumerate() {
        owners.push(None);
        match g {
            Given::Memory(m) => owners[i] = Some(m),
            Given::Own(t) => values[i] = Some(RunValue::Tensor(t)),
            Given::Value(v) => values[i] = Some(v),
        }
    }
    // Storages of several objects first: they keep all of their owners.
    let mut parts: Vec<Option<(*mut u8, DType, Layout)>> =
        owners.iter().map(|m| m.as_ref().map(|m| (m.start, m.dtype, m.layout.clone()))).collect();
    for (at, members) in groups.iter().enumerate() {
        let memory: Vec<LentMemory> = members.iter().filter_map(|i| owners[*i].take()).collect();
        let Some(first) = memory.iter().min_by_key(|m| m.start.addr()) else { continue };
        let start = first.start;
        let end = memory.iter().map(|m| m.start.addr() + m.bytes).max().unwrap_or(start.addr());
        let writable = memory.iter().all(|m| !m.read_only);
        storages[at] = Some((start.addr(), foreign(start, end - start.addr(), writable, memory)));
    }
    for (i, part) in parts.iter_mut().enumerate() {
        let Some((start, dtype, layout)) = part.take() else { continue };
        let name = expected.get(i).map_or_else(|| format!("input {i}"), |e| e.what.clone());
        let (base, storage) = match storages.get(group[i]).and_then(Option::as_ref) {
            Some((base, storage)) => (*base, storage.clone()),
            None => (start.addr(), foreign(start, 0, true, owners[i].take().into_iter().collect())),
        };
        let distance = start.addr().wrapping_sub(base);
        if !distance.is_multiple_of(dtype.size()) {
            return Err(inputs_error(format!("{name} begins inside of an element of another input's memory")));
        }
        let offset = layout.offset + (distance / dtype.size()) as i64;
        let layout = Layout::strided(&layout.sizes, &layout.strides, offset);
        let tensor = RawTensor::new(storage, dtype, layout);
        let tensor = tensor.ok_or_else(|| inputs_error(format!("{name} is not aligned for its elements")))?;
        values[i] = Some(RunValue::Tensor(tensor));
    }
    Ok(Inputs::new(values.into_iter().map(|v| v.unwrap_or(RunValue::None))))
}

/// A storage on memory that objects of Python keep.
pub fn foreign(start: *mut u8, bytes: usize, writable: bool, owners: Vec<LentMemory>) -> Storage {
    if bytes == 0 {
        // Such memory need not be anywhere, nor aligned.
        return Storage::zeroed(0);
    }
    let owners: Vec<_> = owners.into_iter().map(|m| m.owner).collect();
    // SAFETY: the owners keep the memory, which has these bytes, until the storage drops them. That nobody else writes it during a
    // run is for the caller of Python to see to, as with every library that releases the interpreter's lock.
    unsafe { Storage::foreign(start, bytes, writable, move || drop(owners)) }
}

/// How results are given.
pub enum Like {
    /// As arrays of NumPy; as [`Tensor`] where NumPy has no such element type.
    Numpy,
    /// As tensors of this class, which has functions of DLPack.
    Class(Py<PyType>),
    /// As [`Tensor`].
    Raw,
}

impl Like {
    /// From the argument `like`: a class, "numpy" or "raw".
    pub fn of(given: &Bound<'_, PyAny>) -> PyResult<Like> {
        if let Ok(class) = given.cast::<PyType>() {
            return Ok(Like::Class(class.clone().unbind()));
        }
        match given.extract::<String>()?.as_str() {
            "numpy" => Ok(Like::Numpy),
            "raw" => Ok(Like::Raw),
            other => Err(PyValueError::new_err(format!("like is {other:?}; it takes \"numpy\", \"raw\" or a class"))),
        }
    }
}

/// A tensor for Python, on the same memory.
pub fn tensor<'py>(py: Python<'py>, raw: &RawTensor, like: &Like) -> PyResult<Bound<'py, PyAny>> {
    let raw = restride::resolve(raw).map_err(Error::from).or_raise()?;
    let own = |raw: RawTensor| Ok(Bound::new(py, Tensor { raw })?.into_any());
    match like {
        Like::Raw => own(raw),
        Like::Numpy if raw.dtype() == DType::BF16 => own(raw),
        Like::Numpy => py.import("numpy")?.getattr("asarray")?.call1((own(raw)?,)),
        Like::Class(class) => match exchange_api(class.bind(py).as_any()) {
            Some(api) => object(py, &raw, api),
            None => py.import("torch")?.getattr("from_dlpack")?.call1((own(raw)?,)),
        },
    }
}

/// A result for Python.
pub fn value<'py>(py: Python<'py>, value: &RunValue, like: &Like) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        RunValue::Tensor(t) => tensor(py, t, like)?,
        RunValue::Scalar(s) => scalar(py, *s)?,
        RunValue::Str(s) => PyString::new(py, s).into_any(),
        RunValue::None => py.None().into_bound(py),
    })
}

/// A number for Python.
pub fn scalar(py: Python<'_>, s: Scalar) -> PyResult<Bound<'_, PyAny>> {
    Ok(match s {
        Scalar::Bool(b) => PyBool::new(py, b).to_owned().into_any(),
        Scalar::Int(i) => PyInt::new(py, i).into_any(),
        Scalar::Float(x) => PyFloat::new(py, x).into_any(),
        Scalar::Complex(z) => PyComplex::from_doubles(py, z.re, z.im).into_any(),
    })
}
