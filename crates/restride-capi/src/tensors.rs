//! Tensors of the caller, with names.

use crate::arguments::{optional_text, slice};
use crate::dlpack::{DLManagedTensorVersioned, DLTensor, SentTensor, TensorMemory, managed_memory, memory_of};
use crate::status::{CallError, CallResult};
use restride::{Inputs, Layout, Program, RawTensor, Storage, named_inputs};
use std::collections::BTreeMap;
use std::ffi::c_char;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A tensor of the caller: a name, and the memory as a DLPack struct. Set exactly one of `tensor` and `managed`, and the rest to 0.
///
/// - `tensor` lends the memory. It is not copied. The struct itself may go when the call returns; the memory must stay until the call
///   returns, or, where a function says so, until a handle is freed.
/// - `managed` gives the tensor away, if the call succeeds: restride calls its deleter after the last use, on the thread of that use.
///   If the call fails, the tensor is the caller's as before.
///
/// Memory that a program writes must not be read or written by anybody else during a run, and memory that it reads must not be
/// written.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct restride_tensor {
    /// The name of an input, `output.I`, or a name of the state, UTF-8. NULL stands for the input or output at this position.
    pub name: *const c_char,
    /// The caller's memory, or NULL.
    pub tensor: *const DLTensor,
    /// A tensor to give away, or NULL.
    pub managed: *mut DLManagedTensorVersioned,
    /// Declares shared memory: tensors of one call with the same number, not 0, are views of one storage, from the lowest byte of
    /// them to the highest, which must leave no gap. 0 is memory that no other tensor of the call overlaps; such overlaps are an
    /// error where the program writes.
    pub storage: u32,
    /// 0, or RESTRIDE_TENSOR_READ_ONLY.
    pub flags: u32,
}

/// A flag of restride_tensor: the memory may be read only. A program that writes it is refused.
pub const RESTRIDE_TENSOR_READ_ONLY: u32 = 1;

/// A tensor of the caller as restride has it.
pub(crate) struct GivenMemory {
    pub(crate) name: Option<String>,
    pub(crate) tensor: RawTensor,
}

/// The tensors of one call. Managed ones stay the caller's until [`GivenTensors::keep`].
pub(crate) struct GivenTensors {
    pub(crate) all: Vec<GivenMemory>,
    kept: Arc<AtomicBool>,
}

impl GivenTensors {
    /// The call succeeds: managed tensors are restride's from now on.
    pub(crate) fn keep(&self) {
        self.kept.store(true, Ordering::Release);
    }

    /// The inputs of a program.
    pub(crate) fn inputs(&self, program: &Program) -> CallResult<Inputs> {
        let named: Vec<_> = self.all.iter().map(|g| (g.name.as_deref(), g.tensor.clone())).collect();
        Ok(named_inputs(program, &named)?)
    }
}

struct CheckedTensor {
    name: Option<String>,
    what: String,
    memory: TensorMemory,
    managed: *mut DLManagedTensorVersioned,
    group: u32,
}

fn checked(position: usize, given: &restride_tensor) -> CallResult<CheckedTensor> {
    let name = optional_text(given.name, &format!("the name of tensor {position}"))?;
    let what = name.map_or_else(|| format!("tensor {position}"), |n| format!("tensor {n:?}"));
    let memory = match (given.tensor.is_null(), given.managed.is_null()) {
        (false, true) => memory_of(&slice(given.tensor, 1, &what)?[0], &what)?,
        (true, false) => managed_memory(given.managed, &what)?,
        (true, true) => return Err(CallError::argument(format!("{what} has no memory: tensor and managed are NULL"))),
        (false, false) => return Err(CallError::argument(format!("{what} sets both tensor and managed; set one"))),
    };
    let read_only = match given.flags {
        0 => memory.read_only,
        RESTRIDE_TENSOR_READ_ONLY => true,
        other => return Err(CallError::argument(format!("{what} has unknown flags {other:#x}"))),
    };
    let memory = TensorMemory { read_only, ..memory };
    Ok(CheckedTensor { name: name.map(str::to_string), what, memory, managed: given.managed, group: given.storage })
}

/// Tensors of the caller, checked.
pub(crate) fn tensors(list: *const restride_tensor, count: usize) -> CallResult<GivenTensors> {
    let list = slice(list, count, "the list of tensors")?;
    let all: Vec<CheckedTensor> = list.iter().enumerate().map(|(i, t)| checked(i, t)).collect::<CallResult<_>>()?;
    let mut moved: Vec<_> = all.iter().map(|t| t.managed).filter(|m| !m.is_null()).collect();
    moved.sort_unstable();
    if moved.windows(2).any(|w| w[0] == w[1]) {
        return Err(CallError::argument("one managed tensor is given twice"));
    }
    let kept = Arc::new(AtomicBool::new(false));
    let mut groups: BTreeMap<u32, Vec<&CheckedTensor>> = BTreeMap::new();
    for one in all.iter().filter(|t| t.group != 0) {
        groups.entry(one.group).or_default().push(one);
    }
    let mut storages: BTreeMap<u32, (usize, Storage)> = BTreeMap::new();
    for (number, members) in groups {
        storages.insert(number, one_storage(number, &members, &kept)?);
    }
    let one = |t: &CheckedTensor| -> CallResult<GivenMemory> {
        let own = || (t.memory.start.addr(), storage(&t.memory, t.memory.start, t.memory.bytes, &[t.managed], &kept));
        let (start, storage) = storages.get(&t.group).cloned().unwrap_or_else(own);
        let mut layout = t.memory.layout.clone();
        if t.memory.bytes > 0 {
            let distance = t.memory.start.addr() - start;
            if !distance.is_multiple_of(t.memory.dtype.size()) {
                let what =
                    format!("{} begins inside of an element of the storage that it is declared to be on", t.what);
                return Err(CallError::argument(what));
            }
            layout = Layout::strided(&layout.sizes, &layout.strides, (distance / t.memory.dtype.size()) as i64);
        }
        let tensor = RawTensor::new(storage, t.memory.dtype, layout);
        let tensor = tensor.ok_or_else(|| CallError::argument(format!("{} leaves its storage", t.what)))?;
        Ok(GivenMemory { name: t.name.clone(), tensor })
    };
    let all = all.iter().map(one).collect::<CallResult<_>>()?;
    Ok(GivenTensors { all, kept })
}

/// The storage under tensors that are declared to share one, and its first address.
fn one_storage(number: u32, members: &[&CheckedTensor], kept: &Arc<AtomicBool>) -> CallResult<(usize, Storage)> {
    let mut ranges: Vec<&TensorMemory> = members.iter().map(|t| &t.memory).filter(|m| m.bytes > 0).collect();
    ranges.sort_by_key(|m| m.start.addr());
    let managed: Vec<_> = members.iter().map(|t| t.managed).collect();
    let first = ranges.first().copied().unwrap_or(&members[0].memory);
    let mut end = first.start.addr() + first.bytes;
    for m in &ranges {
        if m.start.addr() > end {
            let what = format!("the tensors on storage {number} leave a gap of {} bytes", m.start.addr() - end);
            let what = format!(
                "{what}, which is memory of none of them and is not touched. Give tensors that do not overlap other numbers"
            );
            return Err(CallError::argument(what));
        }
        end = end.max(m.start.addr() + m.bytes);
    }
    let read_only = ranges.iter().any(|m| m.read_only);
    let memory = TensorMemory { read_only, ..first.clone() };
    let start = first.start;
    Ok((start.addr(), storage(&memory, start, end - start.addr(), &managed, kept)))
}

/// Foreign memory as a storage.
fn storage(
    memory: &TensorMemory,
    start: *mut u8,
    bytes: usize,
    managed: &[*mut DLManagedTensorVersioned],
    kept: &Arc<AtomicBool>,
) -> Storage {
    let managed: Vec<SentTensor> = managed.iter().filter(|m| !m.is_null()).map(|m| SentTensor(*m)).collect();
    let kept = kept.clone();
    let release = move || {
        if kept.load(Ordering::Acquire) {
            managed.into_iter().for_each(SentTensor::free);
        }
    };
    // SAFETY: the header asks for memory of these sizes and strides that stays until its last use, which no other code writes
    // during a run, nor reads where the program writes it.
    unsafe { Storage::foreign(start, bytes, !memory.read_only, release) }
}
