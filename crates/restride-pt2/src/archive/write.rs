use super::names;
use crate::error::{Pt2Error, Result};
use crate::model::{self, ExportedProgram, PayloadConfig};
use crate::zip::{Compression, ZipWriter};
use std::borrow::Cow;
use std::io::Write;

/// A file to put into an archive.
#[derive(Debug, Clone)]
pub struct ArchiveFile<'a> {
    /// Its name within its folder: a config's `path_name`, an extra file's name.
    pub name: String,
    /// Its bytes.
    pub bytes: Cow<'a, [u8]>,
}

/// The files of one model.
#[derive(Debug, Clone)]
pub struct ModelFiles<'a> {
    /// `model`, unless there are several.
    pub name: String,
    /// The program.
    pub program: ExportedProgram,
    /// Config of the weights.
    pub weights_config: PayloadConfig,
    /// The storages that `weights_config` names. PyTorch calls them `weight_0`, `weight_1`, …, counted over all
    /// models of an archive.
    pub weights: Vec<ArchiveFile<'a>>,
    /// Config of the constants.
    pub constants_config: PayloadConfig,
    /// The storages that `constants_config` names; PyTorch insists that these names start with `tensor_`,
    /// `custom_obj_` or `opaque_obj_`.
    pub constants: Vec<ArchiveFile<'a>>,
    /// A `torch.save` file of arguments and keyword arguments; empty for none.
    pub sample_inputs: Cow<'a, [u8]>,
}

/// The contents of an archive.
#[derive(Debug, Clone)]
pub struct ArchiveContents<'a> {
    /// The root folder's name, without a slash; PyTorch takes the file's stem.
    pub root: String,
    /// The models; at least one.
    pub models: Vec<ModelFiles<'a>>,
    /// The user's files, kept below `extra/`.
    pub extra: Vec<ArchiveFile<'a>>,
}

/// Writes an archive as PyTorch does: uncompressed entries in PyTorch's order, aligned to 64 bytes. Equal contents give equal
/// bytes. Returns the sink.
pub fn write_archive<W: Write>(out: W, contents: &ArchiveContents<'_>) -> Result<W> {
    if contents.root.is_empty() || contents.root.contains('/') {
        return Err(Pt2Error::malformed(format!("{:?} cannot be an archive's root folder", contents.root)));
    }
    if contents.models.is_empty() {
        return Err(Pt2Error::malformed("an archive needs a model"));
    }
    let mut zip = ZipWriter::new(out);
    let mut put = |path: &str, bytes: &[u8]| zip.add(&format!("{}/{path}", contents.root), bytes, Compression::Stored);
    for m in &contents.models {
        check_files(&m.weights_config, &m.weights, &[""])?;
        for f in &m.weights {
            put(&format!("{}{}", names::WEIGHTS, f.name), &f.bytes)?;
        }
        put(&names::weights_config(&m.name), &model::print(&m.weights_config)?)?;
        let prefixes = ["tensor_", "custom_obj_", "opaque_obj_"];
        check_files(&m.constants_config, &m.constants, &prefixes)?;
        for f in &m.constants {
            put(&format!("{}{}", names::CONSTANTS, f.name), &f.bytes)?;
        }
        put(&names::constants_config(&m.name), &model::print(&m.constants_config)?)?;
        put(&names::model(&m.name), &model::print(&m.program)?)?;
        put(&names::sample_inputs(&m.name), &m.sample_inputs)?;
    }
    for f in &contents.extra {
        put(&format!("{}{}", names::EXTRA, f.name), &f.bytes)?;
    }
    put(names::FORMAT, b"pt2")?;
    put(names::VERSION, b"0")?;
    put(names::CONTAINER_VERSION, b"6\n")?;
    put(names::BYTEORDER, b"little")?;
    let digest = zip.digest();
    zip.add(&format!("{}/{}", contents.root, names::SERIALIZATION_ID), digest.as_bytes(), Compression::Stored)?;
    zip.finish()
}

/// A config and the files that it names must agree, or PyTorch could not read what is written.
fn check_files(config: &PayloadConfig, files: &[ArchiveFile<'_>], prefixes: &[&str]) -> Result<()> {
    for (name, meta) in &config.config {
        if !files.iter().any(|f| f.name == meta.path_name) {
            return Err(Pt2Error::missing(format!("there is no file {}", meta.path_name)).at(name));
        }
    }
    match files.iter().find(|f| !prefixes.iter().any(|p| f.name.starts_with(p))) {
        Some(f) => {
            Err(Pt2Error::malformed(format!("the name must start with one of {}", prefixes.join(", "))).at(&*f.name))
        }
        None => Ok(()),
    }
}
