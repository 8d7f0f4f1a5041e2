//! Programs with in-place operators on views, exported by `scripts/make/autograd_scenarios.py`.

use restride::{Error, Inputs, Program, RunOptions, RunValue, State};
use restride_tensor::RawTensor;
use std::path::{Path, PathBuf};

/// The files of `fixtures/autograd`, in order.
///
/// # Panics
/// The folder is missing.
pub fn programs() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/autograd");
    let mut out: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("the fixtures").map(|e| e.expect("an entry").path()).collect();
    out.retain(|p| p.extension().is_some_and(|e| e == "pt2"));
    out.sort();
    out
}

/// The tensors among inputs.
pub fn tensors(inputs: &Inputs) -> Vec<RawTensor> {
    inputs.values.iter().filter_map(|v| v.tensor().cloned()).collect()
}

/// Tensors as inputs, in memory of their own.
pub fn given(inputs: &[RawTensor]) -> Inputs {
    Inputs::new(inputs.iter().cloned().map(RunValue::Tensor)).deep_clone()
}

/// First output of a program as exported, with true aliasing.
///
/// # Errors
/// An error of the run; an output that is not a tensor.
pub fn loss(program: &Program, inputs: &[RawTensor]) -> Result<f64, String> {
    let say = |e: Error| e.to_string();
    let mut state = State::new(program).map_err(say)?;
    let out = restride::interpret(program, &given(inputs), &mut state, &RunOptions::default()).map_err(say)?;
    Ok(out.values[0].tensor().ok_or("no loss")?.get(&[]).as_f64())
}
