use super::{flat, names};
use crate::error::{At, Pt2Error, Result};
use crate::model::{self, ExportedProgram, PayloadConfig};
use crate::zip::{ZipEntry, ZipReader};
use restride_ir::Limits;
use std::borrow::Cow;
use std::ops::Range;

/// The layout of programs and tensors in an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArchiveLayout {
    /// PyTorch 2.9 and later: each storage is a file of raw bytes, described by configs.
    Pt2,
    /// PyTorch 2.8: the state dict and the constants are one `torch.save` file each.
    Pt2Pickled,
    /// PyTorch 2.6 and 2.7: no root folder, one program, pickled state dict and constants.
    Flat,
}

/// A set of tensors of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload {
    /// Parameters and persistent buffers.
    Weights,
    /// Constants and non-persistent buffers.
    Constants,
}

/// An open `.pt2`.
#[derive(Debug, Clone)]
pub struct Archive<'a> {
    zip: ZipReader<'a>,
    /// With the slash; empty for the flat layout.
    root: String,
    layout: ArchiveLayout,
    models: Vec<String>,
}

impl<'a> Archive<'a> {
    /// Reads the directory and finds out the layout. Nothing else is read yet.
    pub fn open(bytes: &'a [u8]) -> Result<Self> {
        Self::with_limits(bytes, &Limits::default())
    }

    /// [`Archive::open`] with other limits.
    pub fn with_limits(bytes: &'a [u8], limits: &Limits) -> Result<Self> {
        let zip = ZipReader::with_limits(bytes, limits)?;
        if zip.entry(flat::PROGRAM).is_some() {
            return Self::open_flat(zip);
        }
        let first = zip.entries().first().ok_or_else(|| Pt2Error::malformed("the zip is empty"))?;
        // PyTorch's rule: the root is the first name up to its first slash.
        let root = match first.name.split_once('/') {
            Some((root, _)) => format!("{root}/"),
            None => return Err(not_pt2()),
        };
        let mut archive = Self { zip, root, layout: ArchiveLayout::Pt2, models: Vec::new() };
        if archive.small_text(names::FORMAT)?.as_deref() != Some("pt2") {
            return Err(not_pt2());
        }
        match archive.small_text(names::VERSION)?.as_deref() {
            Some("0") => {}
            Some(v) => {
                return Err(Pt2Error::unsupported(format!("archive version {v:?}")).at(names::VERSION));
            }
            None => return Err(Pt2Error::missing("not in the archive").at(names::VERSION)),
        }
        if archive.small_text(names::BYTEORDER)?.as_deref() == Some("big") {
            return Err(Pt2Error::unsupported("written on a big-endian machine; its tensors cannot be read")
                .at(names::BYTEORDER));
        }
        archive.models = archive
            .names()
            .filter_map(|n| n.strip_prefix(names::MODELS)?.strip_suffix(".json"))
            .filter(|n| !n.contains('/'))
            .map(str::to_string)
            .collect();
        let Some(model) = archive.models.first() else {
            let why = if archive.names().any(|n| n.starts_with("data/aotinductor/")) {
                "it holds a compiled AOTInductor model only, not an exported program"
            } else {
                "it holds no program"
            };
            return Err(Pt2Error::missing(why).at(names::MODELS));
        };
        let raw = archive.has(&names::weights_config(model));
        if !raw && archive.has(&names::pickled_weights(model)) {
            archive.layout = ArchiveLayout::Pt2Pickled;
        } else if !raw {
            return Err(Pt2Error::missing("not in the archive").at(names::weights_config(model)));
        }
        Ok(archive)
    }

    fn open_flat(zip: ZipReader<'a>) -> Result<Self> {
        let archive = Self { zip, root: String::new(), layout: ArchiveLayout::Flat, models: vec!["model".to_string()] };
        let version = archive.small_text(flat::VERSION)?.unwrap_or_default();
        let (major, _) = version.trim().split_once('.').unwrap_or((version.trim(), ""));
        match major.parse::<u64>() {
            Ok(8) => Ok(archive),
            Ok(m) if m < 8 => Err(Pt2Error::unsupported(format!(
                "written with schema {version}, by PyTorch 2.5 or older; export it again with PyTorch 2.6 or later"
            ))
            .at(flat::VERSION)),
            _ => Err(Pt2Error::unsupported(format!("schema {version:?}")).at(flat::VERSION)),
        }
    }

    /// Its layout.
    pub fn layout(&self) -> ArchiveLayout {
        self.layout
    }

    /// The names of its models, in the archive's order; never empty. A plain export has one, `model`.
    pub fn models(&self) -> &[String] {
        &self.models
    }

    /// The model to use: by name, or the only one, or the one called `model`.
    pub fn pick_model(&self, name: Option<&str>) -> Result<&str> {
        let found = match name {
            Some(n) => self.models.iter().find(|m| *m == n),
            None if self.models.len() == 1 => self.models.first(),
            None => self.models.iter().find(|m| *m == "model"),
        };
        found.map(String::as_str).ok_or_else(|| {
            let have = self.models.join(", ");
            Pt2Error::missing(match name {
                Some(n) => format!("there is no model {n}; the archive has {have}"),
                None => format!("name one of the models: {have}"),
            })
        })
    }

    /// All names below the root folder, in the archive's order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.zip.entries().iter().filter_map(|e| e.name.strip_prefix(&self.root))
    }

    /// Whether there is such a file below the root folder.
    pub fn has(&self, path: &str) -> bool {
        self.entry(path).is_some()
    }

    /// The entry below the root folder.
    pub fn entry(&self, path: &str) -> Option<&ZipEntry> {
        self.zip.entry(&format!("{}{path}", self.root))
    }

    /// A file's content: borrowed where it is stored, inflated where it is compressed.
    pub fn read(&self, path: &str) -> Result<Cow<'a, [u8]>> {
        let entry = self.entry(path).ok_or_else(|| Pt2Error::missing("not in the archive").at(path))?;
        self.zip.read(entry)
    }

    /// Range of a file's contents in the archive's bytes; `None` if it is compressed.
    pub fn range(&self, path: &str) -> Result<Option<Range<usize>>> {
        self.entry(path).map(ZipEntry::stored_range).ok_or_else(|| Pt2Error::missing("not in the archive").at(path))
    }

    fn read_if_there(&self, path: &str) -> Result<Option<Cow<'a, [u8]>>> {
        match self.entry(path) {
            Some(e) => self.zip.read(e).map(Some),
            None => Ok(None),
        }
    }

    /// A file that holds one word.
    fn small_text(&self, path: &str) -> Result<Option<String>> {
        let Some(bytes) = self.read_if_there(path)? else {
            return Ok(None);
        };
        let text = std::str::from_utf8(&bytes).ok().filter(|t| t.len() <= 64);
        text.map(|t| Some(t.to_string())).ok_or_else(|| Pt2Error::malformed("is not a short text").at(path))
    }

    /// Path of a model's program.
    pub fn program_path(&self, model: &str) -> String {
        match self.layout {
            ArchiveLayout::Flat => flat::PROGRAM.to_string(),
            ArchiveLayout::Pt2 | ArchiveLayout::Pt2Pickled => names::model(model),
        }
    }

    /// A model's program. Schemas other than 8 are refused.
    pub fn program(&self, model: &str) -> Result<ExportedProgram> {
        let path = self.program_path(model);
        let bytes = self.read(&path)?;
        let schema = schema_major(&bytes).at(|| path.clone())?;
        if schema != 8 {
            return Err(Pt2Error::unsupported(format!(
                "written with schema {schema}; only schema 8 (PyTorch 2.6 and later) is known"
            ))
            .at(path));
        }
        model::parse(&bytes).at(|| path)
    }

    /// The config of a model's weights or constants, in the layout [`ArchiveLayout::Pt2`].
    pub fn payload_config(&self, model: &str, payload: Payload) -> Result<PayloadConfig> {
        let path = match payload {
            Payload::Weights => names::weights_config(model),
            Payload::Constants => names::constants_config(model),
        };
        let bytes = self.read(&path)?;
        model::parse(&bytes).at(|| path)
    }

    /// Path of the storage with a config's `path_name`, in the layout [`ArchiveLayout::Pt2`].
    pub fn payload_path(&self, payload: Payload, path_name: &str) -> String {
        match payload {
            Payload::Weights => format!("{}{path_name}", names::WEIGHTS),
            Payload::Constants => format!("{}{path_name}", names::CONSTANTS),
        }
    }

    /// Path of the `torch.save` file with a model's weights or constants; `None` in the layout [`ArchiveLayout::Pt2`].
    pub fn pickled_payload_path(&self, model: &str, payload: Payload) -> Option<String> {
        match (self.layout, payload) {
            (ArchiveLayout::Pt2, _) => None,
            (ArchiveLayout::Pt2Pickled, Payload::Weights) => Some(names::pickled_weights(model)),
            (ArchiveLayout::Pt2Pickled, Payload::Constants) => Some(names::pickled_constants(model)),
            (ArchiveLayout::Flat, Payload::Weights) => Some(flat::STATE_DICT.to_string()),
            (ArchiveLayout::Flat, Payload::Constants) => Some(flat::CONSTANTS.to_string()),
        }
    }

    /// Path of a model's sample inputs, if it has any. An empty file means none.
    pub fn sample_inputs_path(&self, model: &str) -> Option<String> {
        let path = match self.layout {
            ArchiveLayout::Flat => flat::EXAMPLE_INPUTS.to_string(),
            ArchiveLayout::Pt2 | ArchiveLayout::Pt2Pickled => names::sample_inputs(model),
        };
        self.entry(&path).is_some_and(|e| e.size > 0).then_some(path)
    }

    /// The user's extra files, as (name, path below the root folder).
    pub fn extra_files(&self) -> impl Iterator<Item = (&str, &str)> {
        let folder = match self.layout {
            ArchiveLayout::Flat => flat::EXTRA,
            ArchiveLayout::Pt2 | ArchiveLayout::Pt2Pickled => names::EXTRA,
        };
        self.names().filter_map(move |n| Some((n.strip_prefix(folder)?, n)))
    }
}

fn not_pt2() -> Pt2Error {
    Pt2Error::malformed("a zip, but not one that torch.export.save wrote (it has no archive_format file that says pt2)")
}

/// The schema's major version, read first, so that a program of another schema is refused for its version.
fn schema_major(bytes: &[u8]) -> Result<i64> {
    #[derive(serde::Deserialize)]
    struct Probe {
        schema_version: model::SchemaVersion,
    }
    model::parse::<Probe>(bytes).map(|p| p.schema_version.major)
}
