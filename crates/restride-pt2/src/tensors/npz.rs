//! NumPy's `.npz`: a zip of `.npy` arrays, stored or compressed.

use super::npy::{self, Npy};
use super::{FileScalar, FileTensor, Item, NamedItem, NamedTensors, RawStorage, array};
use crate::error::{At, Pt2Error, Result};
use crate::zip::{Compression, ZipReader, ZipWriter};

/// Reads an `.npz`; names are those of the entries without `.npy`. A string without dimensions is a plain
/// value.
pub fn read(bytes: &[u8]) -> Result<NamedTensors> {
    let zip = ZipReader::open(bytes)?;
    let mut out = NamedTensors::default();
    for entry in zip.entries() {
        let name = entry
            .name
            .strip_suffix(".npy")
            .ok_or_else(|| Pt2Error::unsupported("an .npz entry that is not a .npy array").at(&*entry.name))?;
        let array = npy::read(&zip.read(entry)?).at(|| entry.name.clone())?;
        let value = match array {
            Npy::Array(array) => {
                out.storages.push(RawStorage { dtype: array.dtype, bytes: array.bytes });
                Item::Tensor(FileTensor {
                    dtype: array.dtype,
                    sizes: array.sizes,
                    strides: array.strides,
                    offset: 0,
                    storage: out.storages.len() - 1,
                })
            }
            Npy::Str(s) => Item::Scalar(FileScalar::Str(s)),
        };
        out.items.push(NamedItem { name: Some(name.to_string()), value });
    }
    Ok(out)
}

/// Writes an uncompressed `.npz`. Tensors are written in row-major order, bfloat16 as f32.
pub fn write(tensors: &NamedTensors) -> Result<Vec<u8>> {
    let mut zip = ZipWriter::new(Vec::new());
    for (i, item) in tensors.items.iter().enumerate() {
        let (name, npy) = match (&item.name, &item.value) {
            (Some(name), Item::Scalar(FileScalar::Str(s))) => (name.as_str(), npy::write_str(s)?),
            _ => {
                let a = array(tensors, i, "an .npz")?;
                (a.name, npy::write(a.dtype, a.sizes, &a.bytes).at(|| a.name.to_string())?)
            }
        };
        zip.add(&format!("{name}.npy"), &npy, Compression::Stored)?;
    }
    zip.finish()
}
