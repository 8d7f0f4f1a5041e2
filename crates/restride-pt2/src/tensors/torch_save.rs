//! Files of `torch.save` as tensor files: state dicts and other dictionaries, lists and tuples of tensors. No code of theirs is run.

use super::{FileScalar, FileTensor, Item, NamedItem, NamedTensors, RawStorage};
use crate::error::{Pt2Error, Result};
use crate::pickle::{self, PickleValue, TorchFile};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Deepest nesting of dictionaries.
const MAX_DEPTH: usize = 32;

/// Reads a file of `torch.save`. Names of nested dictionaries are joined by dots; a list has none.
pub fn read(bytes: &[u8]) -> Result<NamedTensors> {
    let file = pickle::load(bytes)?;
    let mut out = SaveReader { bytes, file: &file, out: NamedTensors::default(), storages: BTreeMap::new() };
    match &file.value {
        PickleValue::List(items) | PickleValue::Tuple(items) => {
            items.iter().try_for_each(|v| out.value(None, v, 0))?;
        }
        value => out.value(None, value, 0)?,
    }
    // An empty container is the state dict of a module without weights.
    let empty = match &file.value {
        PickleValue::Dict(items) => items.is_empty(),
        PickleValue::List(items) | PickleValue::Tuple(items) => items.is_empty(),
        _ => false,
    };
    if out.out.items.is_empty() && !empty {
        return Err(Pt2Error::unsupported(format!("the file holds {}, no tensors", file.value.kind())));
    }
    Ok(out.out)
}

struct SaveReader<'f> {
    bytes: &'f [u8],
    file: &'f TorchFile,
    out: NamedTensors,
    storages: BTreeMap<Arc<str>, usize>,
}

impl SaveReader<'_> {
    fn value(&mut self, name: Option<String>, value: &PickleValue, depth: usize) -> Result<()> {
        if depth > MAX_DEPTH {
            return Err(Pt2Error::too_large("dictionaries nested too deep"));
        }
        let scalar = match value {
            PickleValue::Dict(items) => {
                for (key, value) in items {
                    let key = match key {
                        PickleValue::Str(s) => s.to_string(),
                        PickleValue::Int(i) => i.to_string(),
                        _ => continue,
                    };
                    let full = match &name {
                        Some(name) => format!("{name}.{key}"),
                        None => key,
                    };
                    self.value(Some(full), value, depth + 1)?;
                }
                return Ok(());
            }
            PickleValue::List(items) | PickleValue::Tuple(items) => {
                for (i, value) in items.iter().enumerate() {
                    let full = name.as_ref().map_or_else(|| i.to_string(), |n| format!("{n}.{i}"));
                    self.value(Some(full), value, depth + 1)?;
                }
                return Ok(());
            }
            PickleValue::Tensor(t) => {
                let storage = match self.storages.get(&t.storage) {
                    Some(at) => *at,
                    None => {
                        let data = self.file.storage_bytes(self.bytes, &t.storage);
                        let data =
                            data.ok_or_else(|| Pt2Error::missing(format!("storage {} has no data", t.storage)))?;
                        let mut bytes = data.to_vec();
                        super::normalise_bools(t.dtype, &mut bytes);
                        self.out.storages.push(RawStorage { dtype: t.dtype, bytes });
                        self.storages.insert(t.storage.clone(), self.out.storages.len() - 1);
                        self.out.storages.len() - 1
                    }
                };
                let tensor = FileTensor {
                    dtype: t.dtype,
                    sizes: t.sizes.clone(),
                    strides: t.strides.clone(),
                    offset: t.offset,
                    storage,
                };
                self.out.items.push(NamedItem { name, value: Item::Tensor(tensor) });
                return Ok(());
            }
            PickleValue::None => FileScalar::None,
            PickleValue::Bool(b) => FileScalar::Bool(*b),
            PickleValue::Int(i) => FileScalar::Int(*i),
            PickleValue::Float(x) => FileScalar::Float(*x),
            PickleValue::Str(s) => FileScalar::Str(s.to_string()),
            // Objects of other classes are no values of a tensor file.
            _ => return Ok(()),
        };
        self.out.items.push(NamedItem { name, value: Item::Scalar(scalar) });
        Ok(())
    }
}
