//! Sample inputs: `(args, kwargs)` as `torch.save` wrote them.

use super::args::dtype;
use crate::archive::Archive;
use crate::pickle::{self, PickleTensor, PickleValue};
use restride_ir::{InputKind, Layout, Program, Result, SampleInput, SampleInputs, Scalar};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The sample inputs, one per user input; `None` if there are none, or none that can be read (which is noted).
pub fn read(archive: &Archive<'_>, model: &str, program: &mut Program) -> Result<Option<SampleInputs>> {
    let Some(path) = archive.sample_inputs_path(model) else { return Ok(None) };
    let file = archive.read(&path)?;
    let loaded = match pickle::load(&file) {
        Ok(loaded) => loaded,
        Err(e) => {
            program.notes.push(format!("the sample inputs cannot be read: {e}"));
            return Ok(None);
        }
    };
    let mut leaves = Vec::new();
    flatten(&loaded.value, &mut leaves);
    let users = program
        .signature
        .inputs
        .iter()
        .filter(|i| matches!(i.kind, InputKind::User(_) | InputKind::Fixed { .. }))
        .count();
    if leaves.len() != users {
        program.notes.push(format!("the {} sample inputs do not fit the program's {users} inputs", leaves.len()));
        return Ok(None);
    }
    let mut out = SampleInputs::default();
    let mut storages: BTreeMap<Arc<str>, usize> = BTreeMap::new();
    for leaf in leaves {
        let input = match leaf {
            PickleValue::Tensor(t) => tensor(&file, &loaded, t, &mut storages, &mut out)?,
            PickleValue::Bool(b) => SampleInput::Scalar(Scalar::Bool(*b)),
            PickleValue::Int(i) => SampleInput::Scalar(Scalar::Int(*i)),
            PickleValue::Float(x) => SampleInput::Scalar(Scalar::Float(*x)),
            PickleValue::Str(s) => SampleInput::Str(s.clone()),
            _ => SampleInput::None,
        };
        out.inputs.push(input);
    }
    Ok(Some(out))
}

fn tensor(
    file: &[u8],
    loaded: &pickle::TorchFile,
    t: &PickleTensor,
    storages: &mut BTreeMap<Arc<str>, usize>,
    out: &mut SampleInputs,
) -> Result<SampleInput> {
    let storage = match storages.get(&t.storage) {
        Some(s) => *s,
        None => {
            out.storages.push(loaded.storage_bytes(file, &t.storage).unwrap_or_default().to_vec());
            storages.insert(t.storage.clone(), out.storages.len() - 1);
            out.storages.len() - 1
        }
    };
    Ok(SampleInput::Tensor { storage, dtype: dtype(t.dtype)?, layout: Layout::strided(&t.sizes, &t.strides, t.offset) })
}

/// Leaves in pytree order; dictionaries in theirs.
fn flatten<'a>(value: &'a PickleValue, out: &mut Vec<&'a PickleValue>) {
    match value {
        PickleValue::Tuple(items) | PickleValue::List(items) => items.iter().for_each(|i| flatten(i, out)),
        PickleValue::Dict(pairs) => pairs.iter().for_each(|(_, v)| flatten(v, out)),
        leaf => out.push(leaf),
    }
}
