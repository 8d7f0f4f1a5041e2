//! Small programs for every rule of the interpreter. What they must give is computed here by plain loops, or is what
//! PyTorch's documented errors say.

mod bodies;
mod functional;
mod givens;
mod writes;

use crate::inputs::{Inputs, RunValue, State};
use crate::interp::{Outputs, RunOptions, interpret};
use restride_ir::{Error, Program};
use restride_tensor::{DType, Layout, RawTensor, Storage};

pub(super) fn program(text: &str) -> Program {
    restride_ir::text::parse(text, &restride_ops::lookup).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Runs a program without weights on tensors that the caller keeps.
pub(super) fn run(text: &str, inputs: &[&RawTensor]) -> Result<Outputs, Error> {
    let program = program(text);
    let inputs = Inputs::new(inputs.iter().map(|t| RunValue::Tensor((*t).clone())));
    let mut state = State::new(&program).unwrap();
    interpret(&program, &inputs, &mut state, &RunOptions { strict: true, ..RunOptions::default() })
}

pub(super) fn runs(text: &str, inputs: &[&RawTensor]) -> Outputs {
    run(text, inputs).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

pub(super) fn fails(text: &str, inputs: &[&RawTensor]) -> String {
    match run(text, inputs) {
        Ok(_) => panic!("this runs:\n{text}"),
        Err(e) => e.to_string(),
    }
}

pub(super) fn f32s(data: &[f32]) -> RawTensor {
    RawTensor::from_slice(data, &[data.len() as i64])
}

pub(super) fn i64s(data: &[i64]) -> RawTensor {
    RawTensor::from_slice(data, &[data.len() as i64])
}

/// 0, 1, 2, … of the given sizes.
pub(super) fn count(sizes: &[i64]) -> RawTensor {
    let n: i64 = sizes.iter().product();
    RawTensor::from_slice(&(0..n).map(|i| i as f32).collect::<Vec<_>>(), sizes)
}

pub(super) fn on(storage: &Storage, dtype: DType, sizes: &[i64], strides: &[i64], offset: i64) -> RawTensor {
    RawTensor::new(storage.clone(), dtype, Layout::strided(sizes, strides, offset)).unwrap()
}

pub(super) fn tensor(outputs: &Outputs, i: usize) -> &RawTensor {
    outputs.values[i].tensor().unwrap()
}

pub(super) fn floats(outputs: &Outputs, i: usize) -> Vec<f32> {
    tensor(outputs, i).to_elements()
}
