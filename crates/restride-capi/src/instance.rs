//! Instances: an arena and a state, run after run.

use crate::arguments::{Out, text};
use crate::compiled::restride_compiled;
use crate::dlpack::{DLManagedTensorVersioned, give};
use crate::handle::{Opaque, create, destroy, own, shared};
use crate::outputs::{outputs_handle, restride_outputs};
use crate::status::{CallError, CallResult, call, restride_kind, restride_status};
use crate::tensors::{GivenMemory, GivenTensors, restride_tensor, tensors};
use restride::{Compiled, DType, Instance, RawTensor, RunOptions, State};
use std::ffi::c_char;
use std::ptr;

/// An arena and the state (parameters, buffers, optimizer state) of a compiled program. One thread at a time may use it, any thread;
/// a second one gets RESTRIDE_KIND_BUSY.
pub struct restride_instance {
    _opaque: [u8; 0],
}

/// An instance; `None` while a session has it, and after a panic.
pub struct InstanceValue {
    pub(crate) instance: Option<Instance>,
    pub(crate) compiled: Compiled,
    pub(crate) run: RunOptions,
}

impl Opaque for restride_instance {
    type Value = InstanceValue;
    const MAGIC: u64 = u64::from_le_bytes(*b"rinstanc");
    const NAME: &'static str = "restride_instance";
}

pub(crate) fn instance_handle(instance: Instance, compiled: Compiled, run: RunOptions) -> *mut restride_instance {
    create::<restride_instance>(InstanceValue { instance: Some(instance), compiled, run })
}

impl InstanceValue {
    pub(crate) fn instance(&mut self) -> CallResult<&mut Instance> {
        self.instance.as_mut().ok_or_else(lost)
    }
}

pub(crate) fn lost() -> CallError {
    CallError::new(restride_kind::Panic, "an earlier call on this handle panicked; free it")
}

/// Makes an instance with the state that the program was exported with. The arena is taken by the first run. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_instance_new(
    compiled: *const restride_compiled,
    instance: *mut *mut restride_instance,
) -> *mut restride_status {
    call(|| {
        let out = Out::new(instance, ptr::null_mut(), "instance")?;
        let from = shared(compiled, "compiled")?;
        out.set(instance_handle(from.compiled.instance()?, from.compiled.clone(), from.run.clone()));
        Ok(())
    })
}

/// Frees an instance. Memory of the caller that it used is free then, unless a tensor that it gave is kept. NULL is allowed.
/// Threads: no other thread may be using the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_instance_free(instance: *mut restride_instance) {
    destroy(instance);
}

/// Whether memory for the state gets the state's contents, or has them.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum restride_contents {
    /// The state's contents are copied into the memory.
    Copy = 0,
    /// The memory's contents become the state's: a run goes on from the contents that another one left.
    Keep = 1,
}

/// Binds memory of the caller to tensors of the state. Later runs read and write the state in this memory. `contents` is a
/// restride_contents. Each tensor must have the element type, sizes and strides of the state's, or be one dimension of uint8 for the
/// whole storage: restride_description.storage_bytes. Tensors of the state that share the storage move with it. The memory must stay
/// until the instance is freed or the state is bound elsewhere. After an error nothing is bound.
/// Threads: one at a time for an instance.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_instance_bind_state(
    instance: *mut restride_instance,
    state: *const restride_tensor,
    count: usize,
    contents: u32,
) -> *mut restride_status {
    call(|| {
        let mut handle = own(instance, "instance")?;
        let given = tensors(state, count)?;
        let own_state = handle.instance()?.state_mut();
        let mut bound = own_state.clone();
        bind_state(&mut bound, &given, contents)?;
        *own_state = bound;
        Ok(())
    })
}

/// Puts tensors of a state into memory of the caller.
pub(crate) fn bind_state(state: &mut State, given: &GivenTensors, contents: u32) -> CallResult<()> {
    if contents > restride_contents::Keep as u32 {
        return Err(CallError::argument(format!("contents is {contents}; it takes 0 (copy) or 1 (keep)")));
    }
    for one in &given.all {
        let Some(name) = &one.name else {
            return Err(CallError::argument("a tensor of the state needs a name"));
        };
        let Some(now) = state.get(name) else {
            let known: Vec<&str> = state.iter().map(|(n, _)| &**n).collect();
            let what = format!("the state has no tensor {name:?}; it has {}", known.join(", "));
            return Err(CallError::new(restride_kind::Inputs, what));
        };
        fits_state(name, one, now)?;
    }
    for one in &given.all {
        let (Some(name), memory) = (&one.name, one.tensor.storage().clone()) else { continue };
        match contents {
            0 => state.move_to(name, memory)?,
            _ => state.resume(name, memory)?,
        }
    }
    given.keep();
    Ok(())
}

fn fits_state(name: &str, given: &GivenMemory, now: &RawTensor) -> CallResult<()> {
    let refuse = |what: String| Err(CallError::new(restride_kind::Inputs, what));
    let (memory, layout) = (&given.tensor, given.tensor.layout());
    let bytes = now.storage().len();
    if layout.offset != 0 {
        return refuse(format!("the memory for {name} begins inside of a declared storage; give it alone"));
    }
    let raw = memory.dtype() == DType::U8 && layout.rank() == 1 && layout.strides[0] == 1;
    if raw && memory.storage().len() >= bytes {
        return Ok(());
    }
    let whole = format!("one dimension of uint8 with {bytes} elements gives memory for the whole storage");
    if memory.dtype() != now.dtype() {
        return refuse(format!(
            "{name} has elements of type {}, and the memory of type {}",
            now.dtype(),
            memory.dtype()
        ));
    }
    if layout.sizes != now.layout().sizes {
        let (want, have) = (&now.layout().sizes[..], &layout.sizes[..]);
        return refuse(format!("{name} has sizes {want:?}, and the memory {have:?}"));
    }
    let steps = |l: &restride::Layout| -> Vec<(i64, i64)> {
        l.sizes.iter().zip(&l.strides).filter(|(n, _)| **n > 1).map(|(n, s)| (*n, *s)).collect()
    };
    if memory.numel() > 0 && steps(layout) != steps(now.layout()) {
        let (want, have) = (&now.layout().strides[..], &layout.strides[..]);
        return refuse(format!("{name} has strides {want:?}, and the memory {have:?}; {whole}"));
    }
    if now.layout().offset != 0 || memory.storage().len() < bytes {
        return refuse(format!("{name} is a view of a storage of {bytes} bytes; {whole}"));
    }
    Ok(())
}

/// A tensor of the state by its name, without a copy. The caller frees it with its deleter, before or after the instance. Runs may
/// write it. Threads: one at a time for an instance.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_instance_state(
    instance: *mut restride_instance,
    name: *const c_char,
    tensor: *mut *mut DLManagedTensorVersioned,
) -> *mut restride_status {
    call(|| {
        let out = Out::new(tensor, ptr::null_mut(), "tensor")?;
        let name = text(name, "name")?;
        let mut handle = own(instance, "instance")?;
        out.set(give(state_tensor(handle.instance()?.state(), name)?)?);
        Ok(())
    })
}

pub(crate) fn state_tensor<'s>(state: &'s State, name: &str) -> CallResult<&'s RawTensor> {
    state.get(name).ok_or_else(|| CallError::new(restride_kind::Inputs, format!("the state has no tensor {name:?}")))
}

/// Runs the program once. `inputs` are read, and written where the program mutates them, in the caller's memory, which must stay until
/// the call returns; for an output that is a view of an input, until that output is freed. `outputs` may be NULL.
///
/// Inputs that do not fit (names, element types, sizes, strides, shared memory) are an error before anything is written. A kernel's
/// own error, such as an index out of range, comes where it would come in PyTorch. Threads: one at a time for an instance.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_instance_run(
    instance: *mut restride_instance,
    inputs: *const restride_tensor,
    count: usize,
    outputs: *mut *mut restride_outputs,
) -> *mut restride_status {
    call(|| {
        let out = match outputs.is_null() {
            true => None,
            false => Some(Out::new(outputs, ptr::null_mut(), "outputs")?),
        };
        let mut handle = own(instance, "instance")?;
        let given = tensors(inputs, count)?;
        let (run, compiled) = (handle.run.clone(), handle.compiled.clone());
        let inputs = given.inputs(compiled.functional())?;
        let results = handle.instance()?.run(&inputs, &run)?;
        given.keep();
        if let Some(out) = out {
            out.set(outputs_handle(compiled.functional(), &results));
        }
        Ok(())
    })
}
