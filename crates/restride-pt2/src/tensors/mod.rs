//! Files of named tensors: `.npz`, `.safetensors`, files of `torch.save`, and a `.json` that says who shares storage.

pub mod json;
pub mod npy;
pub mod npz;
pub mod safetensors;
pub mod torch_save;

use crate::dtype::{FileDType, contiguous_strides, element_count, storage_reach};
use crate::error::{At, Pt2Error, Result};
use std::borrow::Cow;
use std::path::Path;

/// The kinds of tensor file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// NumPy's archive of arrays
    Npz,
    /// Hugging Face's
    Safetensors,
    /// the one with storages
    Json,
    /// what `torch.save` writes; read only
    Torch,
}

impl Format {
    /// By the file's extension.
    pub fn from_path(path: &Path) -> Result<Self> {
        match path.extension().and_then(|e| e.to_str()) {
            Some("npz") => Ok(Self::Npz),
            Some("safetensors") => Ok(Self::Safetensors),
            Some("json") => Ok(Self::Json),
            Some("pt" | "pth" | "bin" | "ckpt") => Ok(Self::Torch),
            _ => Err(Pt2Error::unsupported("a tensor file must end in .npz, .safetensors, .json or .pt")
                .at(path.display().to_string())),
        }
    }
}

/// Tensors and other values in order, with the storages of the tensors.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NamedTensors {
    /// The values.
    pub items: Vec<NamedItem>,
    /// The storages; tensors refer to them by position.
    pub storages: Vec<RawStorage>,
}

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedItem {
    /// Its name; the JSON form has none and counts by position.
    pub name: Option<String>,
    /// The value.
    pub value: Item,
}

/// A tensor or a plain value.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// a tensor
    Tensor(FileTensor),
    /// a plain value
    Scalar(FileScalar),
}

/// A value other than a tensor.
#[derive(Debug, Clone, PartialEq)]
pub enum FileScalar {
    /// nothing
    None,
    /// a truth value
    Bool(bool),
    /// an integer
    Int(i64),
    /// a float
    Float(f64),
    /// a string
    Str(String),
}

/// A tensor as a part of a storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileTensor {
    /// Element type; may differ from its storage's.
    pub dtype: FileDType,
    /// Sizes.
    pub sizes: Vec<i64>,
    /// Strides, in elements.
    pub strides: Vec<i64>,
    /// Offset, in elements.
    pub offset: i64,
    /// Position of the storage.
    pub storage: usize,
}

/// The storage of tensors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawStorage {
    /// The type that the bytes were written as.
    pub dtype: FileDType,
    /// Little-endian elements.
    pub bytes: Vec<u8>,
}

/// Most bytes of a tensor that is copied out of its storage: a stride of zero makes large tensors of small files.
const MAX_COPY: u64 = 1 << 36;

impl NamedTensors {
    /// Adds a contiguous tensor with a storage of its own.
    pub fn push_contiguous(&mut self, name: impl Into<String>, dtype: FileDType, sizes: Vec<i64>, bytes: Vec<u8>) {
        let strides = contiguous_strides(&sizes);
        self.storages.push(RawStorage { dtype, bytes });
        self.items.push(NamedItem {
            name: Some(name.into()),
            value: Item::Tensor(FileTensor { dtype, sizes, strides, offset: 0, storage: self.storages.len() - 1 }),
        });
    }

    /// The value of this name.
    pub fn get(&self, name: &str) -> Option<&Item> {
        self.items.iter().find(|i| i.name.as_deref() == Some(name)).map(|i| &i.value)
    }

    /// Checks that every tensor fits its storage.
    pub fn validate(&self) -> Result<()> {
        for (i, item) in self.items.iter().enumerate() {
            if let Item::Tensor(t) = &item.value {
                self.check(t).at(|| item.place(i))?;
            }
        }
        Ok(())
    }

    fn check(&self, t: &FileTensor) -> Result<&RawStorage> {
        let storage = self
            .storages
            .get(t.storage)
            .ok_or_else(|| Pt2Error::malformed(format!("there is no storage {}", t.storage)))?;
        let reach = storage_reach(&t.sizes, &t.strides, t.offset)?;
        let need = reach.checked_mul(t.dtype.size() as u64);
        if need.is_none_or(|n| n > storage.bytes.len() as u64) {
            return Err(Pt2Error::malformed(format!(
                "a tensor of sizes {:?}, strides {:?} and offset {} needs {reach} elements of {}, but its storage has {} bytes",
                t.sizes,
                t.strides,
                t.offset,
                t.dtype,
                storage.bytes.len()
            )));
        }
        Ok(storage)
    }

    /// A tensor's elements in row-major order.
    pub fn contiguous_bytes(&self, t: &FileTensor) -> Result<Cow<'_, [u8]>> {
        let storage = self.check(t)?;
        let size = t.dtype.size();
        let total = element_count(&t.sizes)?
            .checked_mul(size as u64)
            .filter(|&n| n <= MAX_COPY)
            .ok_or_else(|| Pt2Error::too_large(format!("a tensor of sizes {:?} to be written out", t.sizes)))?
            as usize;
        if total == 0 {
            return Ok(Cow::Borrowed(&[]));
        }
        let start = t.offset as usize * size;
        if is_contiguous(&t.sizes, &t.strides) {
            return Ok(Cow::Borrowed(&storage.bytes[start..start + total]));
        }
        let mut out = Vec::new();
        out.try_reserve_exact(total).map_err(|e| Pt2Error::too_large(e.to_string()))?;
        let mut index = vec![0i64; t.sizes.len()];
        let mut at = t.offset;
        while out.len() < total {
            let byte = at as usize * size;
            out.extend_from_slice(&storage.bytes[byte..byte + size]);
            for d in (0..index.len()).rev() {
                if index[d] + 1 < t.sizes[d] {
                    index[d] += 1;
                    at += t.strides[d];
                    break;
                }
                at -= t.strides[d] * index[d];
                index[d] = 0;
            }
        }
        Ok(Cow::Owned(out))
    }
}

impl NamedItem {
    /// Its name in messages.
    fn place(&self, position: usize) -> String {
        match &self.name {
            Some(n) => n.clone(),
            None => format!("tensor {position}"),
        }
    }
}

fn is_contiguous(sizes: &[i64], strides: &[i64]) -> bool {
    let dense = contiguous_strides(sizes);
    (0..sizes.len()).all(|d| sizes[d] == 1 || strides[d] == dense[d])
}

/// Reads a tensor file's bytes. Of a JSON file with several sets of tensors, reads the inputs.
pub fn read(format: Format, bytes: &[u8]) -> Result<NamedTensors> {
    match format {
        Format::Npz => npz::read(bytes),
        Format::Safetensors => safetensors::read(bytes),
        Format::Json => json::read(bytes, json::Section::Inputs),
        Format::Torch => torch_save::read(bytes),
    }
}

/// Writes a tensor file, the same bytes for the same tensors.
pub fn write(format: Format, tensors: &NamedTensors) -> Result<Vec<u8>> {
    match format {
        Format::Npz => npz::write(tensors),
        Format::Safetensors => safetensors::write(tensors),
        Format::Json => json::write(tensors),
        Format::Torch => Err(Pt2Error::unsupported(
            "tensors cannot be written as torch.save does; name the file .npz, .safetensors or .json",
        )),
    }
}

/// Reads a tensor file, by its extension.
pub fn read_file(path: &Path) -> Result<NamedTensors> {
    let place = || path.display().to_string();
    let format = Format::from_path(path)?;
    let bytes = std::fs::read(path).map_err(Pt2Error::io).at(place)?;
    read(format, &bytes).at(place)
}

/// Writes a tensor file, by its extension.
pub fn write_file(path: &Path, tensors: &NamedTensors) -> Result<()> {
    let place = || path.display().to_string();
    let format = Format::from_path(path)?;
    let bytes = write(format, tensors).at(place)?;
    std::fs::write(path, bytes).map_err(Pt2Error::io).at(place)
}

/// A value for a format that knows arrays only: a number becomes one of no dimensions.
struct Array<'a> {
    name: &'a str,
    dtype: FileDType,
    sizes: &'a [i64],
    bytes: Cow<'a, [u8]>,
}

/// A value as an array; `what` names the format in errors.
fn array<'a>(tensors: &'a NamedTensors, position: usize, what: &str) -> Result<Array<'a>> {
    let item = &tensors.items[position];
    named_array(tensors, item, what).at(|| item.place(position))
}

fn named_array<'a>(tensors: &'a NamedTensors, item: &'a NamedItem, what: &str) -> Result<Array<'a>> {
    let name =
        item.name.as_deref().ok_or_else(|| Pt2Error::unsupported(format!("a value without a name in {what}")))?;
    let number = |dtype, bytes: &[u8]| Array { name, dtype, sizes: &[], bytes: Cow::Owned(bytes.to_vec()) };
    match &item.value {
        Item::Tensor(t) => Ok(Array { name, dtype: t.dtype, sizes: &t.sizes, bytes: tensors.contiguous_bytes(t)? }),
        Item::Scalar(FileScalar::Bool(b)) => Ok(number(FileDType::Bool, &[u8::from(*b)])),
        Item::Scalar(FileScalar::Int(n)) => Ok(number(FileDType::I64, &n.to_le_bytes())),
        Item::Scalar(FileScalar::Float(x)) => Ok(number(FileDType::F64, &x.to_le_bytes())),
        Item::Scalar(FileScalar::None) => {
            Err(Pt2Error::unsupported(format!("None cannot be kept in {what}; a .json can")))
        }
        Item::Scalar(FileScalar::Str(_)) => {
            Err(Pt2Error::unsupported(format!("a string cannot be kept in {what}; a .json can")))
        }
    }
}

/// Makes every byte of truth values 0 or 1.
fn normalise_bools(dtype: FileDType, bytes: &mut [u8]) {
    if dtype == FileDType::Bool {
        bytes.iter_mut().for_each(|b| *b = u8::from(*b != 0));
    }
}

#[cfg(test)]
mod tests;
