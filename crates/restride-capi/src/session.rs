//! Sessions: an instance bound to memory of the caller, which a run reads and writes without any other work.

use crate::arguments::{Out, text};
use crate::dlpack::{DLManagedTensorVersioned, give};
use crate::handle::{Opaque, create, destroy, own, take};
use crate::instance::{instance_handle, lost, restride_instance, state_tensor};
use crate::outputs::{copied, output_at, tensor_of};
use crate::status::{CallError, CallResult, call, restride_status};
use crate::tensors::{GivenTensors, restride_tensor, tensors};
use restride::{Compiled, RawTensor, RunOptions, Session};
use std::collections::BTreeSet;
use std::ffi::c_char;
use std::ptr;

/// An instance bound to inputs and outputs. One thread at a time may use it, any thread; a second one gets RESTRIDE_KIND_BUSY.
pub struct restride_session {
    _opaque: [u8; 0],
}

/// A session; `None` after a panic.
pub struct SessionValue {
    session: Option<Session>,
    compiled: Compiled,
    run: RunOptions,
    written: BTreeSet<String>,
}

impl Opaque for restride_session {
    type Value = SessionValue;
    const MAGIC: u64 = u64::from_le_bytes(*b"rsession");
    const NAME: &'static str = "restride_session";
}

impl SessionValue {
    fn session(&mut self) -> CallResult<&mut Session> {
        self.session.as_mut().ok_or_else(lost)
    }

    /// The tensor for the caller. Memory that runs only read may be a file's: it is copied, because it must not move.
    fn movable(&mut self, tensor: RawTensor) -> CallResult<RawTensor> {
        let state = self.session.as_ref().ok_or_else(lost)?.state();
        let read = state.iter().any(|(n, t)| !self.written.contains(&**n) && t.storage().same(tensor.storage()));
        let written = state.iter().any(|(n, t)| self.written.contains(&**n) && t.storage().same(tensor.storage()));
        Ok(if read && !written { copied(&tensor) } else { tensor })
    }
}

/// Memory for outputs, by position.
fn placed_outputs(given: &GivenTensors) -> CallResult<Vec<Option<RawTensor>>> {
    let mut placed: Vec<Option<RawTensor>> = Vec::new();
    for (position, one) in given.all.iter().enumerate() {
        let at = match &one.name {
            None => position,
            Some(name) => {
                let number = name.strip_prefix("output.").and_then(|n| n.parse::<usize>().ok());
                // More outputs than a program has are refused when it is bound.
                let number = number.filter(|n| *n < 1 << 20);
                number.ok_or_else(|| CallError::argument(format!("{name:?} is no output; outputs are output.0, …")))?
            }
        };
        if placed.len() <= at {
            placed.resize(at + 1, None);
        }
        if placed[at].replace(one.tensor.clone()).is_some() {
            return Err(CallError::argument(format!("memory for output.{at} is given twice")));
        }
    }
    Ok(placed)
}

/// Binds an instance to memory of the caller: every run reads `inputs` and writes `outputs` (`output.I`), where they are. Outputs
/// without memory of the caller get some of their own; those that are views of other memory cannot be given any. The memory must stay
/// until the session is freed or ended. Write new inputs into the memory of the old ones, between runs.
///
/// If the call succeeds, the instance belongs to the session: its handle is freed, and restride_session_end gives it back. If it fails,
/// the instance is as before, but draws of random operators start over. Programs whose sizes a run tells anew cannot be bound:
/// run these with restride_instance_run. Threads: one at a time for an instance.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_session_new(
    instance: *mut restride_instance,
    inputs: *const restride_tensor,
    input_count: usize,
    outputs: *const restride_tensor,
    output_count: usize,
    session: *mut *mut restride_session,
) -> *mut restride_status {
    call(|| {
        let out = Out::new(session, ptr::null_mut(), "session")?;
        let mut handle = own(instance, "instance")?;
        let given = tensors(inputs, input_count)?;
        let memory = tensors(outputs, output_count)?;
        let (compiled, run) = (handle.compiled.clone(), handle.run.clone());
        let inputs = given.inputs(compiled.functional())?;
        let placed = placed_outputs(&memory)?;
        let from = handle.instance.take().ok_or_else(lost)?;
        let state = from.state().clone();
        let made = match from.session(&inputs, &placed, &run) {
            Ok(made) => made,
            Err(e) => {
                let mut again = compiled.instance()?;
                again.set_state(state);
                handle.instance = Some(again);
                return Err(e.into());
            }
        };
        drop(handle);
        given.keep();
        memory.keep();
        let state = restride::describe(compiled.functional()).state;
        let written = state.into_iter().filter(|s| s.mutated != Some(false)).map(|s| s.name).collect();
        out.set(create::<restride_session>(SessionValue { session: Some(made), compiled, run, written }));
        take(instance, "instance").map(drop)
    })
}

/// Runs once: reads the inputs' memory, and writes the outputs' and the state's. Allocates nothing.
/// Threads: one at a time for a session; sessions on other memory run beside it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_session_run(session: *mut restride_session) -> *mut restride_status {
    call(|| Ok(own(session, "session")?.session()?.run()?))
}

/// The tensor of the output at a position (user outputs, then gradients), which every run leaves in the same memory, without a copy.
/// The caller frees it with its deleter, before or after the session. Before the first run its elements mean nothing.
/// Threads: one at a time for a session.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_session_output(
    session: *mut restride_session,
    index: usize,
    tensor: *mut *mut DLManagedTensorVersioned,
) -> *mut restride_status {
    call(|| {
        let out = Out::new(tensor, ptr::null_mut(), "tensor")?;
        let mut handle = own(session, "session")?;
        let found = tensor_of(output_at(handle.session()?.outputs(), index), index)?;
        out.set(give(&handle.movable(found)?)?);
        Ok(())
    })
}

/// A tensor of the state by its name: without a copy if runs write it, else a copy. The caller frees it with its deleter, before or
/// after the session. Threads: one at a time for a session.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_session_state(
    session: *mut restride_session,
    name: *const c_char,
    tensor: *mut *mut DLManagedTensorVersioned,
) -> *mut restride_status {
    call(|| {
        let out = Out::new(tensor, ptr::null_mut(), "tensor")?;
        let name = text(name, "name")?;
        let mut handle = own(session, "session")?;
        let found = state_tensor(handle.session()?.state(), name)?.clone();
        out.set(give(&handle.movable(found)?)?);
        Ok(())
    })
}

/// Ends a session and gives its instance back, state included. The session's handle is freed. Threads: no other thread may be using
/// the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_session_end(
    session: *mut restride_session,
    instance: *mut *mut restride_instance,
) -> *mut restride_status {
    call(|| {
        let out = Out::new(instance, ptr::null_mut(), "instance")?;
        let SessionValue { session, compiled, run, .. } = take(session, "session")?;
        out.set(instance_handle(session.ok_or_else(lost)?.into_instance(), compiled, run));
        Ok(())
    })
}

/// Frees a session with its instance. NULL is allowed. Threads: no other thread may be using the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_session_free(session: *mut restride_session) {
    destroy(session);
}
