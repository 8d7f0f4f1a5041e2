//! Reads files of `torch.save` without executing anything.
//!
//! A `torch.save` file is a zip with a pickle, which is a program for a little stack machine. [`load`] runs that
//! program with the few functions that tensors and plain containers need; every other class or function becomes
//! [`PickleValue::Opaque`], a name and arguments without behaviour.

mod build;
mod value;
mod vm;

pub use value::{PickleTensor, PickleValue, StorageBytes, TorchFile, TorchStorage};
pub use vm::{ObjectId, PickleObject, PickleObjects, PickleStorage};

use crate::error::{At, Pt2Error, Result};
use crate::zip::{ZipEntry, ZipReader};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Reads a `torch.save` file.
pub fn load(bytes: &[u8]) -> Result<TorchFile> {
    if !ZipReader::looks_like_zip(bytes) {
        return Err(Pt2Error::unsupported(
            "not a zip as torch.save writes it (the format from before PyTorch 1.6 is not read)",
        ));
    }
    let zip = ZipReader::open(bytes)?;
    let pickle = zip
        .entries()
        .iter()
        .find(|e| e.name == "data.pkl" || e.name.ends_with("/data.pkl"))
        .ok_or_else(|| Pt2Error::missing("not in the file").at("data.pkl"))?;
    let root = pickle.name.trim_end_matches("data.pkl");
    if let Some(order) = zip.entry(&format!("{root}byteorder"))
        && zip.read(order)?.trim_ascii() == b"big"
    {
        return Err(Pt2Error::unsupported("written on a big-endian machine; its tensors cannot be read"));
    }
    let program = zip.read(pickle)?;
    let mut storages = StorageLookup { zip: &zip, root, folder: "data", found: BTreeMap::new() };
    let value = vm::run(&program, &mut |key, bytes| storages.require(key, bytes)).at(|| pickle.name.clone())?;
    Ok(TorchFile { value, storages: storages.found })
}

/// Reads `ROOT/NAME.pkl` of an archive of `torch.jit.save` as the objects that it makes. Storages are in `storages`, a folder
/// below the root; without one, tensors have types alone.
pub fn load_objects(
    zip: &ZipReader<'_>,
    root: &str,
    name: &str,
    folder: Option<&str>,
) -> Result<(PickleObjects, BTreeMap<String, TorchStorage>)> {
    let path = format!("{root}{name}.pkl");
    let entry = zip.entry(&path).ok_or_else(|| Pt2Error::missing("not in the file").at(&*path))?;
    let program = zip.read(entry)?;
    let mut storages = StorageLookup { zip, root, folder: folder.unwrap_or_default(), found: BTreeMap::new() };
    let mut require = |key: &str, bytes: u64| if folder.is_some() { storages.require(key, bytes) } else { Ok(()) };
    let objects = vm::objects(&program, &mut require).at(|| path)?;
    Ok((objects, storages.found))
}

/// Reads a pickle of an archive by the name of its entry, as the objects that it makes. Tensors have types alone.
pub fn load_entry(zip: &ZipReader<'_>, name: &str) -> Result<PickleObjects> {
    let entry = zip.entry(name).ok_or_else(|| Pt2Error::missing("not in the file").at(name))?;
    let program = zip.read(entry)?;
    vm::objects(&program, &mut |_, _| Ok(())).at(|| name.to_string())
}

/// Looks up the storages that a pickle names.
struct StorageLookup<'z, 'a> {
    zip: &'z ZipReader<'a>,
    root: &'z str,
    /// The folder with the storages.
    folder: &'z str,
    found: BTreeMap<String, TorchStorage>,
}

impl StorageLookup<'_, '_> {
    /// Finds the storage and checks its size against the pickle's.
    fn require(&mut self, key: &str, bytes: u64) -> Result<()> {
        let name = format!("{}{}/{key}", self.root, self.folder);
        if !self.found.contains_key(key) {
            let entry: &ZipEntry =
                self.zip.entry(&name).ok_or_else(|| Pt2Error::missing("not in the file").at(&*name))?;
            let content = match (entry.stored_range(), self.zip.read(entry)?) {
                (Some(range), _) => StorageBytes::Range(range),
                (None, content) => StorageBytes::Owned(Cow::into_owned(content)),
            };
            let storage = TorchStorage { size: entry.size, bytes: content };
            self.found.insert(key.to_string(), storage);
        }
        let have = self.found[key].size;
        if have < bytes {
            return Err(
                Pt2Error::malformed(format!("the pickle says that it has {bytes} bytes, but it has {have}")).at(name)
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
