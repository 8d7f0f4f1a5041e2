//! DLPack 1.x: its structs, memory that others lend by it, and tensors that are lent by it.

use crate::errors::{inputs_error, raise};
use pyo3::exceptions::{PyBufferError, PyException, PyTypeError};
use pyo3::ffi;
use pyo3::ffi::c_str;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyTuple};
use restride::{DType, Error, ErrorKind, Layout, RawTensor, Storage};
use std::ffi::{CStr, c_void};
use std::ptr;

/// `DLDataType`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DLDataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

/// `DLDevice`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DLDevice {
    device_type: i32,
    device_id: i32,
}

/// `DLTensor`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DLTensor {
    pub data: *mut c_void,
    pub device: DLDevice,
    pub ndim: i32,
    pub dtype: DLDataType,
    pub shape: *mut i64,
    pub strides: *mut i64,
    pub byte_offset: u64,
}

impl DLTensor {
    /// A struct to be filled.
    pub const EMPTY: DLTensor = DLTensor {
        data: ptr::null_mut(),
        device: DLDevice { device_type: CPU, device_id: 0 },
        ndim: 0,
        dtype: DLDataType { code: 0, bits: 0, lanes: 1 },
        shape: ptr::null_mut(),
        strides: ptr::null_mut(),
        byte_offset: 0,
    };

    /// Where the first element is.
    pub fn start(&self) -> *mut u8 {
        self.data.cast::<u8>().wrapping_add(self.byte_offset as usize)
    }

    /// Whether PyTorch may conjugate or negate the tensor's elements lazily: it does so with complex numbers and their parts.
    pub fn may_be_lazy(&self) -> bool {
        if self.dtype.code != FLOAT || self.strides.is_null() || self.ndim == 0 {
            return matches!(self.dtype.code, COMPLEX | FLOAT);
        }
        let rank = self.ndim as usize;
        // SAFETY: the lender promises `ndim` sizes and strides, which live as long as the tensor.
        let (sizes, strides) =
            unsafe { (std::slice::from_raw_parts(self.shape, rank), std::slice::from_raw_parts(self.strides, rank)) };
        // The parts of complex numbers are every other element of their memory.
        sizes.iter().zip(strides).all(|(size, stride)| *size <= 1 || stride % 2 == 0)
    }
}

/// The elements that PyTorch shows of a tensor that it conjugates or negates lazily, in the same strides: a program is made for them,
/// and `resolve_conj` makes others. `None` for other tensors.
pub fn settled<'py>(argument: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = argument.py();
    let conjugated: bool = argument.call_method0(intern!(py, "is_conj"))?.extract()?;
    let negated: bool = argument.call_method0(intern!(py, "is_neg"))?.extract()?;
    if !conjugated && !negated {
        return Ok(None);
    }
    let mut own = argument.clone();
    if conjugated {
        own = own.call_method0(intern!(py, "conj"))?;
    }
    if negated {
        own = own.call_method0(intern!(py, "_neg_view"))?;
    }
    let sizes: Vec<i64> = own.call_method0(intern!(py, "size"))?.extract()?;
    let strides: Vec<i64> = own.call_method0(intern!(py, "stride"))?.extract()?;
    // The memory from the tensor's first element to its last. Strides may skip elements of it, and show others several times.
    let span = Layout::strided(&sizes, &strides, 0).cell_range().end;
    let mut all = own.call_method1(intern!(py, "as_strided"), ((span,), (1,)))?;
    if conjugated {
        all = all.call_method0(intern!(py, "conj_physical"))?;
    }
    if negated {
        all = all.call_method0(intern!(py, "neg"))?;
    }
    all.call_method1(intern!(py, "as_strided"), (PyTuple::new(py, sizes)?, PyTuple::new(py, strides)?)).map(Some)
}

/// `DLManagedTensor`, of versions before 1.0.
#[repr(C)]
pub struct DLManagedTensor {
    dl_tensor: DLTensor,
    manager_ctx: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut DLManagedTensor)>,
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
pub struct DLManagedTensorVersioned {
    version: [u32; 2],
    manager_ctx: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
    flags: u64,
    dl_tensor: DLTensor,
}

/// `DLPackExchangeAPI`: functions of a library that lends tensors without capsules.
#[repr(C)]
pub struct ExchangeApi {
    version: [u32; 2],
    _older: *mut c_void,
    pub allocate: Option<
        unsafe extern "C" fn(
            *mut DLTensor,
            *mut *mut DLManagedTensorVersioned,
            *mut c_void,
            unsafe extern "C" fn(*mut c_void, *const i8, *const i8),
        ) -> i32,
    >,
    _from_object: Option<unsafe extern "C" fn(*mut c_void, *mut *mut DLManagedTensorVersioned) -> i32>,
    pub to_object: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned, *mut *mut c_void) -> i32>,
    pub lend: Option<unsafe extern "C" fn(*mut c_void, *mut DLTensor) -> i32>,
}

// SAFETY: DLPack asks that the struct never changes.
unsafe impl Send for ExchangeApi {}
// SAFETY: as above.
unsafe impl Sync for ExchangeApi {}

const CPU: i32 = 1;
const FLOAT: u8 = 2;
const COMPLEX: u8 = 5;
const READ_ONLY: u64 = 1;
const OLD: &CStr = c_str!("dltensor");
const OLD_USED: &CStr = c_str!("used_dltensor");
const NEW: &CStr = c_str!("dltensor_versioned");
const NEW_USED: &CStr = c_str!("used_dltensor_versioned");

/// Codes of `DLDataTypeCode`, by element type.
const CODES: [(DType, u8); 12] = [
    (DType::Bool, 6),
    (DType::U8, 1),
    (DType::I8, 0),
    (DType::I16, 0),
    (DType::I32, 0),
    (DType::I64, 0),
    (DType::F16, FLOAT),
    (DType::BF16, 4),
    (DType::F32, FLOAT),
    (DType::F64, FLOAT),
    (DType::C64, COMPLEX),
    (DType::C128, COMPLEX),
];

/// The DLPack type of an element type.
pub fn data_type(dtype: DType) -> DLDataType {
    let code = CODES.iter().find(|(d, _)| *d == dtype).map_or(0, |c| c.1);
    DLDataType { code, bits: dtype.size() as u8 * 8, lanes: 1 }
}

fn element_type(given: DLDataType) -> Option<DType> {
    CODES.iter().find(|(d, _)| data_type(*d) == given).map(|c| c.0)
}

/// Memory that an object of Python lends, and the tensor in it.
pub struct LentMemory {
    /// The lowest byte.
    pub start: *mut u8,
    /// Bytes from there on.
    pub bytes: usize,
    pub dtype: DType,
    /// Sizes, strides and the offset from the lowest byte, in elements.
    pub layout: Layout,
    pub read_only: bool,
    /// Keeps the memory.
    pub owner: Owner,
}

/// What keeps memory of Python.
pub enum Owner {
    /// An object.
    Object(#[allow(dead_code)] Py<PyAny>),
    /// A managed tensor, whose deleter is called.
    New(SentPointer<DLManagedTensorVersioned>),
    /// As above, of versions before 1.0.
    Old(SentPointer<DLManagedTensor>),
}

/// A pointer that is freed once, by any thread.
pub struct SentPointer<T>(*mut T);

// SAFETY: DLPack asks of deleters that any thread may call them.
unsafe impl<T> Send for SentPointer<T> {}

impl Drop for Owner {
    fn drop(&mut self) {
        // Deleters of Python libraries may need the interpreter.
        match self {
            Owner::Object(_) => {}
            Owner::New(managed) => Python::attach(|_| {
                // SAFETY: the capsule gave the tensor away; this calls its deleter once.
                unsafe {
                    if let Some(deleter) = (*managed.0).deleter {
                        deleter(managed.0);
                    }
                }
            }),
            Owner::Old(managed) => Python::attach(|_| {
                // SAFETY: as above.
                unsafe {
                    if let Some(deleter) = (*managed.0).deleter {
                        deleter(managed.0);
                    }
                }
            }),
        }
    }
}

/// Checks what a `DLTensor` describes.
pub fn memory_of(tensor: &DLTensor, what: &str) -> PyResult<(*mut u8, usize, DType, Layout)> {
    if tensor.device.device_type != CPU {
        let device = tensor.device.device_type;
        return Err(inputs_error(format!(
            "{what} is on a device of type {device}; only the CPU's memory (1) is known"
        )));
    }
    if !(0..=64).contains(&tensor.ndim) {
        return Err(inputs_error(format!("{what} has {} dimensions; 0 to 64 are allowed", tensor.ndim)));
    }
    let Some(dtype) = element_type(tensor.dtype) else {
        let DLDataType { code, bits, lanes } = tensor.dtype;
        let what = format!("{what} has an unknown element type: code {code}, {bits} bits, {lanes} lanes");
        return Err(inputs_error(what));
    };
    let rank = tensor.ndim as usize;
    let numbers = |start: *mut i64| match rank {
        0 => &[][..],
        // SAFETY: the lender promises `ndim` numbers.
        _ => unsafe { std::slice::from_raw_parts(start.cast_const(), rank) },
    };
    let sizes = numbers(tensor.shape);
    match tensor.strides.is_null() {
        true => placed(tensor.start(), dtype, sizes, None, what),
        false => placed(tensor.start(), dtype, sizes, Some(numbers(tensor.strides)), what),
    }
}

/// The first byte, the bytes and the layout of a tensor whose first element is at `start`.
pub fn placed(
    start: *mut u8,
    dtype: DType,
    sizes: &[i64],
    strides: Option<&[i64]>,
    what: &str,
) -> PyResult<(*mut u8, usize, DType, Layout)> {
    let refuse =
        || inputs_error(format!("{what} has sizes {sizes:?} and strides {strides:?}, which no memory can have"));
    let counted = sizes.iter().try_fold(1i64, |n, s| n.checked_mul((*s).max(1)));
    if counted.is_none() || sizes.iter().any(|s| *s < 0) {
        return Err(refuse());
    }
    let no_copy = |what: String| Err(raise(&Error::new(ErrorKind::Inputs, what).help("pass a copy of it")));
    let negative = |(size, stride): (&i64, &i64)| *size > 1 && *stride < 0;
    let layout = match strides {
        None => Layout::contiguous(sizes),
        Some(strides) if sizes.iter().zip(strides).any(negative) => {
            return no_copy(format!("{what} has negative strides, which tensors of PyTorch cannot have"));
        }
        Some(strides) => Layout::strided(sizes, strides, 0),
    };
    let bytes = layout.byte_range(dtype.size()).ok_or_else(refuse)?.end;
    if bytes > 0 && start.is_null() {
        return Err(inputs_error(format!("{what} has elements and no memory")));
    }
    if bytes > 0 && !start.addr().is_multiple_of(dtype.align()) {
        let size = dtype.align();
        return no_copy(format!("{what} is not aligned: {dtype} needs an address that is a multiple of {size}"));
    }
    Ok((start, bytes, dtype, layout))
}

/// The functions by which a class lends its tensors, if it has some that are known here.
pub fn exchange_api(class: &Bound<'_, PyAny>) -> Option<&'static ExchangeApi> {
    let capsule = class.getattr("__dlpack_c_exchange_api__").ok()?;
    let capsule = capsule.cast::<PyCapsule>().ok()?;
    let api = capsule.pointer_checked(Some(c_str!("dlpack_exchange_api"))).ok()?.cast::<ExchangeApi>();
    // SAFETY: DLPack asks that the struct stays as long as the process.
    let api = unsafe { api.as_ref() };
    (api.version[0] == 1).then_some(api)
}

/// Takes what a capsule of `__dlpack__` holds.
pub fn from_capsule(capsule: &Bound<'_, PyAny>, what: &str) -> PyResult<LentMemory> {
    let capsule = capsule.cast::<PyCapsule>().map_err(|_| PyTypeError::new_err("__dlpack__ gave no capsule"))?;
    let rename = |to: &CStr| {
        // SAFETY: the capsule is valid, and the name lasts as long as the process.
        match unsafe { ffi::PyCapsule_SetName(capsule.as_ptr(), to.as_ptr()) } {
            0 => Ok(()),
            _ => Err(PyErr::fetch(capsule.py())),
        }
    };
    if let Ok(managed) = capsule.pointer_checked(Some(NEW)) {
        let managed = managed.cast::<DLManagedTensorVersioned>().as_ptr();
        // SAFETY: the capsule's name says what it holds.
        let (version, flags, tensor) = unsafe { ((*managed).version, (*managed).flags, &(*managed).dl_tensor) };
        if version[0] != 1 {
            let [major, minor] = version;
            return Err(PyBufferError::new_err(format!("{what} is of DLPack {major}.{minor}; 1.x is known")));
        }
        let (start, bytes, dtype, layout) = memory_of(tensor, what)?;
        rename(NEW_USED)?;
        let owner = Owner::New(SentPointer(managed));
        return Ok(LentMemory { start, bytes, dtype, layout, read_only: flags & READ_ONLY != 0, owner });
    }
    let managed = capsule.pointer_checked(Some(OLD))?.cast::<DLManagedTensor>().as_ptr();
    // SAFETY: as above.
    let (start, bytes, dtype, layout) = memory_of(unsafe { &(*managed).dl_tensor }, what)?;
    rename(OLD_USED)?;
    Ok(LentMemory { start, bytes, dtype, layout, read_only: false, owner: Owner::Old(SentPointer(managed)) })
}

/// The memory of an object that has `__dlpack__`, or `None`.
pub fn lent(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Option<LentMemory>> {
    let py = object.py();
    // A library's own functions lend tensors that ask for gradients as well.
    if let Some(lend) = exchange_api(object.get_type().as_any()).and_then(|api| api.lend) {
        let mut tensor = DLTensor::EMPTY;
        // SAFETY: the object is of the class whose functions these are.
        if unsafe { lend(object.as_ptr().cast(), &raw mut tensor) } != 0 {
            let error = PyErr::take(py).unwrap_or_else(|| PyBufferError::new_err("the library gives no reason"));
            return Err(not_lent(py, what, error));
        }
        let (start, bytes, dtype, layout) = memory_of(&tensor, what)?;
        let owner = Owner::Object(object.clone().unbind());
        return Ok(Some(LentMemory { start, bytes, dtype, layout, read_only: false, owner }));
    }
    let Ok(method) = object.getattr("__dlpack__") else { return Ok(None) };
    let options = PyDict::new(py);
    options.set_item("max_version", (1, 0))?;
    let capsule = match method.call((), Some(&options)) {
        Err(e) if e.is_instance_of::<PyTypeError>(py) => method.call0(),
        other => other,
    };
    match capsule {
        Ok(capsule) => from_capsule(&capsule, what).map(Some),
        // Read-only arrays of an older numpy.
        Err(e) if e.is_instance_of::<PyBufferError>(py) && object.hasattr("__array_interface__")? => Ok(None),
        Err(e) => Err(not_lent(py, what, e)),
    }
}

/// Why an object lends no memory, in the first line of its library's error: PyTorch's go on with frames of C++.
fn not_lent(py: Python<'_>, what: &str, error: PyErr) -> PyErr {
    if !error.is_instance_of::<PyException>(py) {
        return error;
    }
    let said = error.value(py).to_string();
    let made = inputs_error(format!("{what} lends no memory: {}", said.lines().next().unwrap_or_default()));
    made.set_cause(py, Some(error));
    made
}

/// A lent tensor, with what its struct points to.
struct GivenTensor {
    managed: DLManagedTensorVersioned,
    sizes: Vec<i64>,
    strides: Vec<i64>,
    _storage: Storage,
}

/// A managed tensor on a tensor's memory, which is kept as long as the managed tensor.
fn give(tensor: &RawTensor) -> PyResult<*mut DLManagedTensorVersioned> {
    let start = pinned(tensor)?;
    let layout = tensor.layout();
    let data = if tensor.numel() == 0 { ptr::null_mut() } else { start.cast::<c_void>() };
    let dl_tensor = DLTensor { data, ndim: layout.rank() as i32, dtype: data_type(tensor.dtype()), ..DLTensor::EMPTY };
    let flags = if tensor.storage().is_read_only() { READ_ONLY } else { 0 };
    let managed = DLManagedTensorVersioned {
        version: [1, 0],
        manager_ctx: ptr::null_mut(),
        deleter: Some(delete),
        flags,
        dl_tensor,
    };
    let (sizes, strides) = (layout.sizes.to_vec(), layout.strides.to_vec());
    let given = Box::into_raw(Box::new(GivenTensor { managed, sizes, strides, _storage: tensor.storage().clone() }));
    // SAFETY: the box was just made, and has no other owner; its vectors stay where they are.
    unsafe {
        (*given).managed.dl_tensor.shape = (*given).sizes.as_mut_ptr();
        (*given).managed.dl_tensor.strides = (*given).strides.as_mut_ptr();
        (*given).managed.manager_ctx = given.cast();
        Ok(&raw mut (*given).managed)
    }
}

/// Where the first element of a tensor is, from now on for as long as its storage lives.
pub fn pinned(tensor: &RawTensor) -> PyResult<*mut u8> {
    let start = tensor.storage().pin();
    let start = start.map_err(|e| raise(&Error::new(ErrorKind::Inputs, format!("the tensor cannot be given: {e}"))))?;
    let offset = usize::try_from(tensor.layout().offset).unwrap_or(0) * tensor.dtype().size();
    Ok(start.wrapping_add(offset))
}

unsafe extern "C" fn delete(managed: *mut DLManagedTensorVersioned) {
    if !managed.is_null() {
        // SAFETY: the caller passes a tensor of `give`, once.
        drop(unsafe { Box::from_raw((*managed).manager_ctx.cast::<GivenTensor>()) });
    }
}

unsafe extern "C" fn delete_capsule(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls this with a capsule of `capsule`; one whose tensor was taken has another name.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, NEW.as_ptr()) == 1 {
            delete(ffi::PyCapsule_GetPointer(capsule, NEW.as_ptr()).cast());
        }
    }
}

/// A capsule of DLPack 1.0 on a tensor's memory.
pub fn capsule<'py>(py: Python<'py>, tensor: &RawTensor) -> PyResult<Bound<'py, PyAny>> {
    let managed = give(tensor)?;
    // SAFETY: the pointer is not NULL, the name lasts as long as the process, and the destructor frees what nobody took.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyCapsule_New(managed.cast(), NEW.as_ptr(), Some(delete_capsule))) }
}

/// A tensor as an object of the library whose functions these are, on the same memory.
pub fn object<'py>(py: Python<'py>, tensor: &RawTensor, api: &ExchangeApi) -> PyResult<Bound<'py, PyAny>> {
    let Some(to_object) = api.to_object else { return Err(PyBufferError::new_err("the library takes no tensors")) };
    let managed = give(tensor)?;
    let mut out = ptr::null_mut();
    // SAFETY: the managed tensor is given away, and the library calls its deleter.
    match unsafe { to_object(managed, &raw mut out) } {
        // SAFETY: the library gave a new reference.
        0 => unsafe { Bound::from_owned_ptr_or_err(py, out.cast()) },
        _ => Err(PyErr::take(py).unwrap_or_else(|| PyBufferError::new_err("the library refused a tensor"))),
    }
}
