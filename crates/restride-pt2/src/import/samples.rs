//! Sample inputs: `(args, kwargs)` as `torch.save` wrote them.

use super::weights::{normal_bools, once};
use crate::archive::Archive;
use crate::dtype::computed;
use crate::pickle::{self, PickleTensor, PickleValue};
use crate::pytree::TreeSpec;
use restride_ir::{DType, Layout, Program, Result, SampleInput, SampleInputs, Scalar};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The sample inputs, one for each user input. `None` if the file has none, or has unreadable ones, which adds a note.
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
    let spec = program.pytree.as_ref().and_then(|(spec, _)| TreeSpec::parse(spec).ok());
    let mut leaves = Vec::new();
    flatten(&loaded.value, spec.as_ref(), &mut leaves);
    let users = crate::user_inputs(program).count();
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
    let dtype = computed(t.dtype)?;
    let storage = once(storages, &t.storage, &mut out.storages, || {
        Ok(loaded.storage_bytes(file, &t.storage).unwrap_or_default().to_vec())
    })?;
    if dtype == DType::Bool
        && let Some(normal) = normal_bools(&out.storages[storage])
    {
        out.storages[storage] = normal;
    }
    Ok(SampleInput::Tensor { storage, dtype, layout: Layout::strided(&t.sizes, &t.strides, t.offset) })
}

/// Collects leaves in pytree order. Dictionaries follow the order of the spec, which may differ from that of the saved arguments.
fn flatten<'a>(value: &'a PickleValue, spec: Option<&TreeSpec>, out: &mut Vec<&'a PickleValue>) {
    let (container, children) = match spec {
        Some(TreeSpec::Leaf) => return out.push(value),
        Some(TreeSpec::Node(container, children)) => (Some(container), children.as_slice()),
        None => (None, &[][..]),
    };
    let mut all = |items: &mut dyn Iterator<Item = &'a PickleValue>| {
        for (i, item) in items.enumerate() {
            flatten(item, children.get(i), out);
        }
    };
    match value {
        PickleValue::Tuple(items) | PickleValue::List(items) => all(&mut items.iter()),
        PickleValue::Dict(pairs) => {
            let keys = container.and_then(|c| c.keys()).unwrap_or_default();
            let find = |key: &serde_json::Value| pairs.iter().find(|(k, _)| same_key(k, key)).map(|(_, v)| v);
            match keys.iter().map(find).collect::<Option<Vec<_>>>() {
                Some(sorted) if sorted.len() == pairs.len() => all(&mut sorted.into_iter()),
                _ => all(&mut pairs.iter().map(|(_, v)| v)),
            }
        }
        // A named tuple is an object of an unknown class, made of its fields.
        PickleValue::Opaque { args, .. } if !args.is_empty() && spec.is_some() => all(&mut args.iter()),
        leaf => out.push(leaf),
    }
}

fn same_key(key: &PickleValue, spec: &serde_json::Value) -> bool {
    match key {
        PickleValue::Str(s) => spec.as_str() == Some(s),
        PickleValue::Int(i) => spec.as_i64() == Some(*i),
        PickleValue::Bool(b) => spec.as_bool() == Some(*b),
        _ => false,
    }
}
