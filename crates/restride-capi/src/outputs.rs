//! What a run gives.

use crate::arguments::{Out, c_string};
use crate::dlpack::{DLManagedTensorVersioned, give};
use crate::handle::{Opaque, create, destroy, shared};
use crate::status::{CallError, CallResult, call, quiet, restride_status};
use restride::{DType, Inputs, Outputs, Program, RawTensor, RunValue, Scalar};
use std::ffi::{CString, c_char};
use std::ptr;

/// The outputs of one run. Immutable: any number of threads may use them.
pub struct restride_outputs {
    _opaque: [u8; 0],
}

/// Outputs with their names: `output.I`, then `grad.NAME`.
pub struct OutputsValue {
    all: Vec<(CString, RunValue)>,
}

impl Opaque for restride_outputs {
    type Value = OutputsValue;
    const MAGIC: u64 = u64::from_le_bytes(*b"routputs");
    const NAME: &'static str = "restride_outputs";
}

/// The value at a position among the user outputs and the gradients after them.
pub(crate) fn output_at(outputs: &Outputs, index: usize) -> Option<RunValue> {
    let gradient = |at: usize| outputs.gradients.get(at).map(|g| RunValue::Tensor(g.1.clone()));
    outputs.values.get(index).cloned().or_else(|| gradient(index - outputs.values.len()))
}

/// The tensor of an output; a number is one without dimensions.
pub(crate) fn tensor_of(value: Option<RunValue>, index: usize) -> CallResult<RawTensor> {
    match value {
        Some(RunValue::Tensor(t)) => Ok(t),
        Some(RunValue::Scalar(Scalar::Bool(b))) => {
            let byte = RawTensor::from_slice(&[u8::from(b)], &[]);
            let bool = byte.alias(DType::Bool, byte.layout().clone());
            bool.ok_or_else(|| CallError::argument(format!("the output at position {index} is no tensor")))
        }
        Some(RunValue::Scalar(Scalar::Int(i))) => Ok(RawTensor::from_slice(&[i], &[])),
        Some(RunValue::Scalar(s)) => Ok(RawTensor::from_slice(&[s.as_f64()], &[])),
        Some(_) => Err(CallError::argument(format!("the output at position {index} is no tensor"))),
        None => Err(CallError::argument(format!("the run has no output at position {index}"))),
    }
}

/// The tensor on a copy of its storage.
pub(crate) fn copied(tensor: &RawTensor) -> RawTensor {
    let copy = Inputs::new([RunValue::Tensor(tensor.clone())]).deep_clone();
    copy.values.iter().find_map(RunValue::tensor).cloned().unwrap_or_else(|| tensor.clone())
}

pub(crate) fn outputs_handle(program: &Program, outputs: &Outputs) -> *mut restride_outputs {
    let values = outputs.values.iter().enumerate().map(|(i, v)| (c_string(&format!("output.{i}")), v.clone()));
    let gradients = outputs
        .gradients
        .iter()
        .map(|(i, t)| (c_string(&restride::files::gradient_name(program, *i)), RunValue::Tensor(t.clone())));
    create::<restride_outputs>(OutputsValue { all: values.chain(gradients).collect() })
}

/// The number of outputs, gradients included; 0 for what is no outputs. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_outputs_count(outputs: *const restride_outputs) -> usize {
    quiet(0, || Ok(shared(outputs, "outputs")?.all.len()))
}

/// The name of an output: `output.I` or `grad.NAME`; NULL past the end. Lives as long as the outputs. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_outputs_name(outputs: *const restride_outputs, index: usize) -> *const c_char {
    quiet(ptr::null(), || Ok(shared(outputs, "outputs")?.all.get(index).map_or(ptr::null(), |o| o.0.as_ptr())))
}

/// The tensor of an output, without a copy; a number is a tensor without dimensions. The caller frees it with its deleter, before or
/// after the outputs. An output that the program returns as a view of an input is in the memory of that input. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_outputs_tensor(
    outputs: *const restride_outputs,
    index: usize,
    tensor: *mut *mut DLManagedTensorVersioned,
) -> *mut restride_status {
    call(|| {
        let out = Out::new(tensor, ptr::null_mut(), "tensor")?;
        let outputs = shared(outputs, "outputs")?;
        out.set(give(&tensor_of(outputs.all.get(index).map(|o| o.1.clone()), index)?)?);
        Ok(())
    })
}

/// Frees outputs. NULL is allowed. Threads: no other thread may be using the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_outputs_free(outputs: *mut restride_outputs) {
    destroy(outputs);
}
