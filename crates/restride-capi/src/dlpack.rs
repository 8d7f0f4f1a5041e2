//! DLPack 1.0's structs, and tensors from and to them.

use crate::status::{CallError, CallResult, quiet};
use restride::{DType, Layout, RawTensor, Storage};
use std::ffi::c_void;

/// `DLDataType`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DLDataType {
    /// `DLDataTypeCode`.
    pub code: u8,
    /// Bits of an element.
    pub bits: u8,
    /// Elements of a vector: 1.
    pub lanes: u16,
}

/// `DLDevice`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DLDevice {
    /// `DLDeviceType`: 1 is the CPU.
    pub device_type: i32,
    /// Number of the device.
    pub device_id: i32,
}

/// `DLTensor`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DLTensor {
    /// Start of the memory.
    pub data: *mut c_void,
    /// Device of the memory.
    pub device: DLDevice,
    /// Number of dimensions.
    pub ndim: i32,
    /// Element type.
    pub dtype: DLDataType,
    /// Sizes.
    pub shape: *mut i64,
    /// Strides in elements; NULL for row-major ones.
    pub strides: *mut i64,
    /// Offset of the first element in bytes.
    pub byte_offset: u64,
}

/// `DLPackVersion`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DLPackVersion {
    /// Major version.
    pub major: u32,
    /// Minor version.
    pub minor: u32,
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
pub struct DLManagedTensorVersioned {
    /// The version of these structs.
    pub version: DLPackVersion,
    /// What the maker keeps with it.
    pub manager_ctx: *mut c_void,
    /// Frees the tensor.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
    /// Flags: 1 is read-only memory.
    pub flags: u64,
    /// The tensor.
    pub dl_tensor: DLTensor,
}

const CPU: i32 = 1;
const MAJOR: u32 = 1;
const READ_ONLY: u64 = 1;
const MOST_DIMENSIONS: i32 = 64;

/// Codes of `DLDataTypeCode`, by element type.
const CODES: [(DType, u8); 12] = [
    (DType::Bool, 6),
    (DType::U8, 1),
    (DType::I8, 0),
    (DType::I16, 0),
    (DType::I32, 0),
    (DType::I64, 0),
    (DType::F16, 2),
    (DType::BF16, 4),
    (DType::F32, 2),
    (DType::F64, 2),
    (DType::C64, 5),
    (DType::C128, 5),
];

/// The DLPack type of an element type.
pub(crate) fn data_type(dtype: DType) -> DLDataType {
    let code = CODES.iter().find(|(d, _)| *d == dtype).map_or(0, |c| c.1);
    DLDataType { code, bits: dtype.size() as u8 * 8, lanes: 1 }
}

fn element_type(given: DLDataType, what: &str) -> CallResult<DType> {
    let found = CODES.iter().find(|(d, _)| data_type(*d) == given);
    found.map(|c| c.0).ok_or_else(|| {
        let DLDataType { code, bits, lanes } = given;
        CallError::argument(format!("{what} has an unknown element type: code {code}, {bits} bits, {lanes} lanes"))
    })
}

/// Memory that a `DLTensor` describes.
#[derive(Clone, Debug)]
pub(crate) struct TensorMemory {
    /// First element.
    pub(crate) start: *mut u8,
    /// Bytes from the first element on.
    pub(crate) bytes: usize,
    /// Element type.
    pub(crate) dtype: DType,
    /// Sizes and strides, with offset 0.
    pub(crate) layout: Layout,
    /// Whether it may be read only.
    pub(crate) read_only: bool,
}

/// Checks a `DLTensor`.
pub(crate) fn memory_of(tensor: &DLTensor, what: &str) -> CallResult<TensorMemory> {
    let wrong = |why: String| Err(CallError::argument(format!("{what} {why}")));
    if tensor.device.device_type != CPU {
        return wrong(format!(
            "is on a device of type {}; only the CPU's memory (1) is known",
            tensor.device.device_type
        ));
    }
    if !(0..=MOST_DIMENSIONS).contains(&tensor.ndim) {
        return wrong(format!("has {} dimensions; 0 to {MOST_DIMENSIONS} are allowed", tensor.ndim));
    }
    let dtype = element_type(tensor.dtype, what)?;
    let rank = tensor.ndim as usize;
    let sizes = crate::arguments::slice(tensor.shape.cast_const(), rank, &format!("the shape of {what}"))?;
    let layout = match tensor.strides.is_null() {
        true => {
            // Sizes whose product is no number would overflow row-major strides.
            let counted = sizes.iter().try_fold(1i64, |n, s| n.checked_mul((*s).max(1)));
            if counted.is_none() {
                return wrong(format!("has sizes {sizes:?}, which no memory can hold"));
            }
            Layout::contiguous(sizes)
        }
        false => {
            let strides =
                crate::arguments::slice(tensor.strides.cast_const(), rank, &format!("the strides of {what}"))?;
            Layout::strided(sizes, strides, 0)
        }
    };
    let Some(range) = layout.byte_range(dtype.size()) else {
        return wrong(format!(
            "has sizes {:?} and strides {:?}, which no memory can have from its first element on",
            &layout.sizes[..],
            &layout.strides[..]
        ));
    };
    let bytes = range.end;
    if bytes > 0 && tensor.data.is_null() {
        return wrong("has no memory: data is NULL".into());
    }
    let address = usize::try_from(tensor.byte_offset).ok().and_then(|o| tensor.data.addr().checked_add(o));
    let Some(address) = address.filter(|a| a.checked_add(bytes).is_some()) else {
        return wrong("leaves the address space".into());
    };
    if bytes > 0 && !address.is_multiple_of(dtype.align()) {
        return wrong(format!("is not aligned: {dtype} needs a multiple of {} bytes", dtype.align()));
    }
    Ok(TensorMemory { start: tensor.data.cast::<u8>().with_addr(address), bytes, dtype, layout, read_only: false })
}

/// Checks a `DLManagedTensorVersioned`.
pub(crate) fn managed_memory(managed: *mut DLManagedTensorVersioned, what: &str) -> CallResult<TensorMemory> {
    if !managed.is_aligned() {
        return Err(CallError::argument(format!("{what} is not aligned")));
    }
    // SAFETY: the header asks for a managed tensor that is not used by anybody else; it is not NULL here.
    let managed = unsafe { &*managed };
    if managed.version.major != MAJOR {
        let what = format!("{what} is of DLPack {}.{}; 1.x is known", managed.version.major, managed.version.minor);
        return Err(CallError::argument(what));
    }
    let memory = memory_of(&managed.dl_tensor, what)?;
    Ok(TensorMemory { read_only: managed.flags & READ_ONLY != 0, ..memory })
}

/// Sends a managed tensor to the thread that frees it.
pub(crate) struct SentTensor(pub(crate) *mut DLManagedTensorVersioned);

// SAFETY: the header says that a deleter may be called on any thread.
unsafe impl Send for SentTensor {}

impl SentTensor {
    /// Calls the deleter.
    pub(crate) fn free(self) {
        // SAFETY: the tensor was moved to this library, which calls its deleter once.
        unsafe {
            if let Some(deleter) = (*self.0).deleter {
                deleter(self.0);
            }
        }
    }
}

/// A tensor that the caller got, with what its struct points to.
struct GivenTensor {
    managed: DLManagedTensorVersioned,
    sizes: Vec<i64>,
    strides: Vec<i64>,
    _storage: Storage,
}

/// Gives a tensor to the caller without a copy. Its memory stays where it is as long as the caller keeps the tensor.
pub(crate) fn give(tensor: &RawTensor) -> CallResult<*mut DLManagedTensorVersioned> {
    let tensor = restride::resolve(tensor).map_err(restride::Error::from)?;
    let storage = tensor.storage();
    let start = match storage.pin() {
        Ok(start) => start,
        Err(e) => {
            return Err(CallError::new(crate::status::restride_kind::Busy, format!("the tensor cannot be given: {e}")));
        }
    };
    let layout = tensor.layout();
    let offset = usize::try_from(layout.offset).unwrap_or(0) * tensor.dtype().size();
    let data = match tensor.numel() {
        0 => std::ptr::null_mut(),
        _ => start.wrapping_add(offset).cast::<c_void>(),
    };
    let dl_tensor = DLTensor {
        data,
        device: DLDevice { device_type: CPU, device_id: 0 },
        ndim: layout.rank() as i32,
        dtype: data_type(tensor.dtype()),
        shape: std::ptr::null_mut(),
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    };
    let managed = DLManagedTensorVersioned {
        version: DLPackVersion { major: MAJOR, minor: 0 },
        manager_ctx: std::ptr::null_mut(),
        deleter: Some(delete),
        flags: if storage.is_read_only() { READ_ONLY } else { 0 },
        dl_tensor,
    };
    let (sizes, strides) = (layout.sizes.to_vec(), layout.strides.to_vec());
    let given = Box::into_raw(Box::new(GivenTensor { managed, sizes, strides, _storage: storage.clone() }));
    // SAFETY: the box was just made and has no other owner; its vectors do not move.
    unsafe {
        (*given).managed.dl_tensor.shape = (*given).sizes.as_mut_ptr();
        (*given).managed.dl_tensor.strides = (*given).strides.as_mut_ptr();
        (*given).managed.manager_ctx = given.cast();
        Ok(&raw mut (*given).managed)
    }
}

/// The deleter of tensors that callers got.
unsafe extern "C" fn delete(managed: *mut DLManagedTensorVersioned) {
    if managed.is_null() {
        return;
    }
    quiet((), || {
        // SAFETY: the caller passes a tensor of `give`, once.
        let given = unsafe { (*managed).manager_ctx.cast::<GivenTensor>() };
        // SAFETY: as above.
        drop(unsafe { Box::from_raw(given) });
        Ok(())
    });
}
