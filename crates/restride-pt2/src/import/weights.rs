//! Parameters, buffers and constants with their memory.

use super::damaged;
use crate::archive::{Archive, Payload};
use crate::dtype::computed;
use crate::dtype::storage_reach;
use crate::error::Pt2Error;
use crate::model::{self, SymNumber};
use crate::pickle::{self, PickleValue};
use restride_ir::{DType, Error, Layout, Program, Result, Weight, Weights};
use restride_tensor::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Reads every weight that the signature names.
pub fn read(bytes: &Bytes, archive: &Archive<'_>, model: &str, program: &Program) -> Result<Weights> {
    let mut out = Weights::default();
    let inputs = 0..program.signature.inputs.len();
    let named: BTreeSet<&str> = inputs.filter_map(|i| program.weight_name(i)).map(|n| &**n).collect();
    for payload in [Payload::Weights, Payload::Constants] {
        match archive.pickled_payload_path(model, payload) {
            None => raw(bytes, archive, model, payload, &named, &mut out)?,
            Some(path) => {
                if archive.has(&path) {
                    pickled(archive, &path, &mut out)?;
                }
            }
        }
    }
    // Every weight that the graph takes must exist and have the declared type.
    for (i, spec) in program.signature.inputs.iter().enumerate() {
        let Some(name) = program.weight_name(i) else { continue };
        let Some(weight) = out.tensors.get(name) else {
            return Err(damaged(format!("the archive has no data for {name}")));
        };
        let ty = program.graph().values[spec.value].ty.tensor().and_then(|t| t.known());
        let Some(ty) = ty else {
            return Err(damaged(format!("{name} is not a tensor of known sizes")));
        };
        if weight.dtype == DType::Bool
            && let Some(normal) = normal_bools(&out.storages[weight.storage])
        {
            let storage = weight.storage;
            out.storages[storage] = Bytes::copy_of(&normal);
        }
        let weight = &out.tensors[name];
        if ty.dtype != weight.dtype || ty.layout.sizes != weight.layout.sizes {
            return Err(damaged(format!(
                "the graph takes {name} as {ty}, the archive has {}{:?}",
                weight.dtype,
                weight.layout.sizes.as_slice()
            )));
        }
    }
    Ok(out)
}

/// Reads storages of one file each, with a config of the weights on them.
fn raw(
    bytes: &Bytes,
    archive: &Archive<'_>,
    model: &str,
    payload: Payload,
    named: &BTreeSet<&str>,
    out: &mut Weights,
) -> Result<()> {
    let config = archive.payload_config(model, payload)?;
    let mut storages: BTreeMap<String, usize> = BTreeMap::new();
    for (name, meta) in &config.config {
        let at = |e: Error| Error { what: format!("weight {name}: {}", e.what), ..e };
        let Some(tensor) = &meta.tensor_meta else {
            // Custom and opaque objects are dropped: a node that uses one is refused.
            continue;
        };
        let path = archive.payload_path(payload, &meta.path_name);
        if meta.use_pickle {
            let file = archive.read(&path)?;
            let loaded = pickle::load(&file)?;
            let mut parts = Vec::new();
            inner_tensors(name, &loaded.value, &mut parts);
            parts.retain(|(part, _)| part == name || named.contains(part.as_str()));
            let mut storages = BTreeMap::new();
            for (part, value) in parts {
                add_pickled(&file, &loaded, &part, value, &mut storages, out).map_err(at)?;
                if let Some(weight) = out.tensors.get_mut(part.as_str()) {
                    weight.is_param |= meta.is_param;
                }
            }
            continue;
        }
        let storage = once(&mut storages, &path, &mut out.storages, || match archive.range(&path)? {
            Some(range) => bytes.slice(range).ok_or_else(|| damaged("an entry leaves the file")),
            None => Ok(Bytes::copy_of(&archive.read(&path)?)),
        })?;
        let weight = weight(tensor, storage, meta.is_param, out.storages[storage].len()).map_err(at)?;
        // An empty file stands for zeros of any size.
        let wanted = storage_reach(&weight.layout.sizes, &weight.layout.strides, weight.layout.offset)? as usize
            * weight.dtype.size();
        if out.storages[storage].is_empty() && wanted > 0 {
            if wanted > 1 << 32 {
                return Err(at(damaged("an empty file stands for more than 4 GiB of zeros")));
            }
            out.storages[storage] = Bytes::copy_of(&vec![0; wanted]);
        }
        out.tensors.insert(name.as_str().into(), weight);
    }
    Ok(())
}

/// A tensor, or those inside a tensor subclass by the names of the attributes.
fn inner_tensors<'a>(name: &str, value: &'a PickleValue, out: &mut Vec<(String, &'a PickleValue)>) {
    let (class, args) = match value {
        PickleValue::Tensor(_) => return out.push((name.into(), value)),
        PickleValue::Opaque { class, args } => (&**class, &args[..]),
        _ => return,
    };
    match (class, args) {
        ("torch._utils._rebuild_parameter" | "torch._utils._rebuild_parameter_with_state", [data, ..]) => {
            inner_tensors(name, data, out);
        }
        ("torch._tensor._rebuild_from_type_v2", [_, _, _, state]) => {
            // Attributes, or a pair of them and of those in slots.
            let state = if let PickleValue::Tuple(pair) = state { pair.first().unwrap_or(state) } else { state };
            let PickleValue::Dict(attributes) = state else { return };
            for (key, value) in attributes {
                if let PickleValue::Str(key) = key {
                    inner_tensors(&format!("{name}.{key}"), value, out);
                }
            }
        }
        _ => {}
    }
}

fn weight(meta: &model::TensorMeta, storage: usize, is_param: bool, bytes: usize) -> Result<Weight> {
    let int = |s: &SymNumber| match s {
        SymNumber::AsInt(i) if *i >= 0 => Ok(*i),
        _ => Err(damaged("sizes and strides must be known and not negative")),
    };
    let sizes = meta.sizes.iter().map(int).collect::<Result<Vec<_>>>()?;
    let strides = meta.strides.iter().map(int).collect::<Result<Vec<_>>>()?;
    if sizes.len() != strides.len() {
        return Err(damaged("sizes and strides differ in number"));
    }
    let offset = int(&meta.storage_offset)?;
    let dtype = computed(meta.dtype.dtype()?)?;
    let reach = storage_reach(&sizes, &strides, offset)?;
    let need = reach.checked_mul(dtype.size() as u64).ok_or_else(|| Pt2Error::too_large("larger than any memory"))?;
    if need > bytes as u64 && bytes > 0 {
        return Err(damaged(format!("needs {need} bytes of a storage of {bytes}")));
    }
    let layout = Layout::strided(&sizes, &strides, offset);
    Ok(Weight { storage, dtype, layout, is_param, requires_grad: meta.requires_grad })
}

/// Reads one `torch.save` file with a dictionary of all tensors.
fn pickled(archive: &Archive<'_>, path: &str, out: &mut Weights) -> Result<()> {
    let file = archive.read(path)?;
    if file.is_empty() {
        return Ok(());
    }
    let loaded = pickle::load(&file).map_err(|e| e.at(path))?;
    let PickleValue::Dict(pairs) = &loaded.value else {
        return Err(damaged(format!("{path} is not a dictionary of tensors")));
    };
    let mut storages = BTreeMap::new();
    for (key, value) in pairs {
        let PickleValue::Str(name) = key else { continue };
        add_pickled(&file, &loaded, name, value, &mut storages, out)?;
    }
    Ok(())
}

/// Position of a key's storage, which is read once.
pub(super) fn once<K: Ord + Clone, S>(
    known: &mut BTreeMap<K, usize>,
    key: &K,
    storages: &mut Vec<S>,
    read: impl FnOnce() -> Result<S>,
) -> Result<usize> {
    if let Some(at) = known.get(key) {
        return Ok(*at);
    }
    storages.push(read()?);
    known.insert(key.clone(), storages.len() - 1);
    Ok(storages.len() - 1)
}

fn add_pickled(
    file: &[u8],
    loaded: &pickle::TorchFile,
    name: &str,
    value: &PickleValue,
    storages: &mut BTreeMap<Arc<str>, usize>,
    out: &mut Weights,
) -> Result<()> {
    let PickleValue::Tensor(t) = value else { return Ok(()) };
    let storage = once(storages, &t.storage, &mut out.storages, || {
        let data = loaded.storage_bytes(file, &t.storage).ok_or_else(|| damaged(format!("{name} has no data")))?;
        Ok(Bytes::copy_of(data))
    })?;
    let layout = Layout::strided(&t.sizes, &t.strides, t.offset);
    let weight =
        Weight { storage, dtype: computed(t.dtype)?, layout, is_param: t.is_parameter, requires_grad: t.requires_grad };
    out.tensors.insert(name.into(), weight);
    Ok(())
}

/// A copy of a storage of bools with 1 for each byte larger than 1; `None` if it has no such byte. Kernels rely on 0 and 1.
pub fn normal_bools(bytes: &[u8]) -> Option<Vec<u8>> {
    bytes.iter().any(|b| *b > 1).then(|| bytes.iter().map(|b| u8::from(*b != 0)).collect())
}
