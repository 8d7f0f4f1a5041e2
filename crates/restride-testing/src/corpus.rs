//! The corpus of aliasing cases: programs, inputs, and the results or refusals of eager PyTorch.

use restride_exec::{Inputs, RunValue};
use restride_ir::{DType, Layout, Limits, Program, Result, Scalar};
use restride_pt2::import::{ImportOptions, import};
use restride_pt2::tensors::json::{self, Section};
use restride_pt2::tensors::{FileScalar, Item, NamedTensors};
use restride_tensor::{Bytes, RawTensor, Storage};
use std::path::{Path, PathBuf};

/// One case.
pub struct AliasCase {
    /// Name of the files.
    pub name: String,
    /// The program, or the error of its import.
    pub program: Result<Program>,
    /// Its inputs.
    pub inputs: Inputs,
    /// Whether eager PyTorch runs it.
    pub runs: bool,
}

/// All cases in a directory that have a program, by name.
///
/// # Panics
/// A file is malformed.
pub fn cases(dir: &Path) -> Vec<AliasCase> {
    let files = std::fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let mut files: Vec<PathBuf> = files.map(|f| f.expect("a directory that can be read").path()).collect();
    files.retain(|p| p.extension().is_some_and(|e| e == "pt2"));
    files.sort();
    files.iter().map(|f| case(f)).collect()
}

fn case(pt2: &Path) -> AliasCase {
    let name = pt2.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let bytes = std::fs::read(pt2).expect("a program that can be read");
    let text = std::fs::read(pt2.with_extension("json")).expect("a case has a .json");
    let options = ImportOptions { model: None, lookup: &restride_ops::lookup, limits: Limits::default() };
    let program = import(&Bytes::copy_of(&bytes), &name, &options);
    let inputs = json::read(&text, Section::Inputs).expect("a case has inputs");
    let runs = json::read(&text, Section::After).is_ok();
    AliasCase { name, program, inputs: Inputs::new(values(&inputs)), runs }
}

/// The values of a file, over storages shared as in the file.
fn values(file: &NamedTensors) -> Vec<RunValue> {
    let storages: Vec<Storage> = file.storages.iter().map(|s| Storage::from_bytes(Bytes::copy_of(&s.bytes))).collect();
    let value = |item: &Item| match item {
        Item::Tensor(t) => {
            let layout = Layout::strided(&t.sizes, &t.strides, t.offset);
            let dtype = DType::from_name(t.dtype.name()).expect("an element type of ours");
            RunValue::Tensor(RawTensor::new(storages[t.storage].clone(), dtype, layout).expect("inside of its storage"))
        }
        Item::Scalar(FileScalar::Int(i)) => RunValue::Scalar(Scalar::Int(*i)),
        Item::Scalar(FileScalar::Float(x)) => RunValue::Scalar(Scalar::Float(*x)),
        Item::Scalar(FileScalar::Bool(b)) => RunValue::Scalar(Scalar::Bool(*b)),
        Item::Scalar(FileScalar::Str(s)) => RunValue::Str(s.as_str().into()),
        Item::Scalar(FileScalar::None) => RunValue::None,
    };
    file.items.iter().map(|i| value(&i.value)).collect()
}
