//! Opening program files: `.pt2` and TorchScript archives, `.fx` and pasted texts, recognised by their contents.

use restride_ir::{Error, ErrorKind, Limits, Op, Program, Result, Weights};
use restride_ops::lookup;
use restride_pt2::placed::SavedPlan;
use restride_tensor::Bytes;
use restride_torchscript::GivenInputs;
use restride_torchscript::text::{GraphForm, PastedGraph, import_graph};
use std::path::Path;
use std::sync::Arc;

/// How to open a program.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// Which model of an archive with several; the method of a TorchScript archive; the number, from 1, of a text's graph.
    pub model: Option<String>,
    /// The weights of a text: a `.pt2`, a TorchScript archive, a `.safetensors`, or a state dict in a `.pt` or `.npz`.
    pub weights: Option<std::path::PathBuf>,
    /// The weights of a text in memory, instead of `weights`.
    pub given_weights: Option<Arc<Weights>>,
    /// A file with schemas of custom operators, one a line.
    pub ops: Option<std::path::PathBuf>,
    /// Read files into memory instead of mapping them. A mapped file takes no memory until it is used, but must stay as it is: if it
    /// is cut short, the system ends the process that reads the missing part.
    pub no_mmap: bool,
    /// Limits on a file and its program.
    pub limits: Limits,
    /// Inputs that a TorchScript archive or a text without types is recorded for.
    pub inputs: GivenInputs,
}

impl OpenOptions {
    fn bytes(&self, path: &Path) -> Result<Bytes> {
        let bytes = if self.no_mmap { Bytes::read(path) } else { Bytes::map(path) };
        bytes.map_err(|e| file_error(path, &e))
    }
}

/// Opens a `.pt2` that `torch.export.save` wrote, an archive of `torch.jit.save`, a `.fx` or another graph text.
///
/// ```
/// # use restride::OpenOptions;
/// # let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/examples/llama_decode.pt2"));
/// let program = restride::open(path, &OpenOptions::default())?;
/// assert!(program.graph().order.len() > 100);
/// println!("{}", restride::text::print(&program));
/// # Ok::<(), restride::Error>(())
/// ```
///
/// # Errors
/// A file that is missing, damaged, or of another format; an operator that is not known.
pub fn open(path: &Path, options: &OpenOptions) -> Result<Program> {
    let name = path.file_stem().map_or_else(|| "program".into(), |s| s.to_string_lossy().into_owned());
    if let Some(ops) = &options.ops {
        register(ops)?;
    }
    let bytes = options.bytes(path)?;
    if path.extension().is_some_and(|e| e == "pt2" || e == "pt") && !bytes.starts_with(ZIP) {
        let what =
            format!("{}: this is no zip archive, which torch.export.save and torch.jit.save write", path.display());
        return Err(Error::new(ErrorKind::File, what).help("save it again, or call a text .fx"));
    }
    of_bytes(&bytes, &name, options).map_err(|e| {
        let own = e.kind == ErrorKind::File && e.source.is_none();
        if own { Error { what: format!("{}: {}", path.display(), e.what), ..e } } else { e }
    })
}

/// The names of the models in a `.pt2`, in the archive's order. A plain `torch.export.save` has one, `model`.
///
/// ```
/// # use restride::OpenOptions;
/// # let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/pt2/prefill_decode.pt2"));
/// assert_eq!(restride::models(path, &OpenOptions::default())?, ["decode", "prefill"]);
/// # Ok::<(), restride::Error>(())
/// ```
///
/// # Errors
/// A file that is missing, damaged, or of another format.
pub fn models(path: &Path, options: &OpenOptions) -> Result<Vec<String>> {
    let bytes = options.bytes(path)?;
    let archive = restride_pt2::archive::Archive::open(&bytes).map_err(Error::from);
    let archive = archive.map_err(|e| Error { what: format!("{}: {}", path.display(), e.what), ..e })?;
    Ok(archive.models().to_vec())
}

/// Opens a program in memory: the bytes of a `.pt2`, or of a `.fx` text. The program uses weights where they are;
/// [`Bytes::from_owner`] and [`Bytes::foreign`] take the caller's bytes without a copy.
///
/// ```
/// # use restride::{Bytes, OpenOptions};
/// let text = "graph(%x: f32[2]) {\n  %y: f32[2] = aten.relu_.default(%x)\n  return %y\n}\n";
/// let program = restride::open_bytes(&Bytes::copy_of(text.as_bytes()), &OpenOptions::default())?;
/// assert_eq!(program.graph().order.len(), 1);
/// # Ok::<(), restride::Error>(())
/// ```
///
/// # Errors
/// As [`open`].
pub fn open_bytes(bytes: &Bytes, options: &OpenOptions) -> Result<Program> {
    if let Some(ops) = &options.ops {
        register(ops)?;
    }
    of_bytes(bytes, "program", options)
}

/// A program by the contents of a file.
fn of_bytes(bytes: &Bytes, name: &str, options: &OpenOptions) -> Result<Program> {
    if bytes.starts_with(ZIP) {
        return of_archive(bytes, name, options);
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|_| Error::new(ErrorKind::File, "these bytes are neither an archive (a zip) nor a text"))?;
    match PastedGraph::find(text)? {
        Some(graph) => of_graph(graph, name, options),
        None => of_text(text, options),
    }
}

/// The form of a pasted graph in a file; `None` for a file of another kind.
///
/// # Errors
/// A file that is not there.
pub fn graph_form(path: &Path, options: &OpenOptions) -> Result<Option<GraphForm>> {
    let bytes = options.bytes(path)?;
    let graph = std::str::from_utf8(&bytes).ok().and_then(|text| PastedGraph::find(text).ok().flatten());
    Ok(graph.map(|g| g.form))
}

/// A graph that was pasted as text.
fn of_graph(graph: PastedGraph, name: &str, options: &OpenOptions) -> Result<Program> {
    let import = restride_torchscript::RecordOptions {
        method: options.model.as_deref(),
        lookup: &lookup,
        limits: options.limits,
        inputs: &options.inputs,
    };
    let weights = given_weights(options)?;
    let program = import_graph(graph, name, weights.as_deref(), &import)?;
    restride_ir::verify(&program)?;
    Ok(program)
}

/// Opens a program from a reader, such as a connection, and reads all of it into memory.
///
/// ```
/// # use restride::OpenOptions;
/// # let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/pt2/kv_cache.pt2"));
/// let program = restride::open_reader(std::fs::File::open(path).expect("a file"), &OpenOptions::default())?;
/// assert!(program.sample_inputs.is_some());
/// # Ok::<(), restride::Error>(())
/// ```
///
/// # Errors
/// As [`open`], and the reader's own error.
pub fn open_reader(mut reader: impl std::io::Read, options: &OpenOptions) -> Result<Program> {
    let mut all = Vec::new();
    let read = reader.read_to_end(&mut all);
    read.map_err(|e| Error::new(ErrorKind::File, format!("the program cannot be read: {e}")))?;
    open_bytes(&Bytes::copy_of(&all), options)
}

/// The first bytes of a zip.
const ZIP: &[u8] = b"PK";

/// A program with types has its symbolic sizes, and takes no others.
fn has_own_sizes(options: &OpenOptions) -> Result<()> {
    if options.inputs.dynamic.is_empty() {
        return Ok(());
    }
    let what = "symbolic sizes are given, and the file says itself which of its sizes are symbolic";
    Err(Error::new(ErrorKind::Inputs, what).help("name them in torch.export.export(…, dynamic_shapes=…)"))
}

fn of_text(text: &str, options: &OpenOptions) -> Result<Program> {
    has_own_sizes(options)?;
    let mut program = restride_ir::text::parse(text, &lookup)?;
    program.limits = options.limits;
    if let Some(weights) = given_weights(options)? {
        restride_ir::text::attach_weights(&mut program, weights)?;
    }
    restride_ir::verify(&program)?;
    Ok(program)
}

fn of_archive(bytes: &Bytes, name: &str, options: &OpenOptions) -> Result<Program> {
    if restride_torchscript::is_archive(bytes) {
        let import = restride_torchscript::RecordOptions {
            method: options.model.as_deref(),
            lookup: &lookup,
            limits: options.limits,
            inputs: &options.inputs,
        };
        let program = restride_torchscript::import(bytes, name, &import)?;
        restride_ir::verify(&program)?;
        return Ok(program);
    }
    has_own_sizes(options)?;
    let import = restride_pt2::import::ImportOptions {
        model: options.model.as_deref(),
        lookup: &lookup,
        limits: options.limits,
    };
    let program = restride_pt2::import::import(bytes, name, &import)?;
    restride_ir::verify(&program)?;
    Ok(program)
}

/// Placement and plan that [`crate::Compiled::save`] wrote beside a program, for [`crate::CompileOptions::saved`]; `None` for
/// files without.
///
/// ```
/// # use restride::OpenOptions;
/// # let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/pt2/kv_cache.pt2"));
/// assert!(restride::saved_plan(path, &OpenOptions::default())?.is_none()); // torch.export.save writes none
/// # Ok::<(), restride::Error>(())
/// ```
///
/// # Errors
/// A damaged file; a plan for another program than the one that it is beside.
pub fn saved_plan(path: &Path, options: &OpenOptions) -> Result<Option<SavedPlan>> {
    if path.extension().is_some_and(|e| e == "fx") {
        return Ok(None);
    }
    let bytes = options.bytes(path)?;
    if !bytes.starts_with(ZIP) || restride_torchscript::is_archive(&bytes) {
        return Ok(None);
    }
    restride_pt2::placed::saved_plan(&bytes, options.model.as_deref())
        .map_err(|e| Error { what: format!("{}: {}", path.display(), e.what), ..e })
}

/// The weights that the options give, in memory or in a file.
fn given_weights(options: &OpenOptions) -> Result<Option<Arc<Weights>>> {
    match (&options.given_weights, &options.weights) {
        (Some(weights), _) => Ok(Some(weights.clone())),
        (None, Some(path)) => read_weights(path, options).map(Some),
        (None, None) => Ok(None),
    }
}

/// The weights in a program file or a tensor file.
fn read_weights(path: &Path, options: &OpenOptions) -> Result<Arc<Weights>> {
    let bytes = options.bytes(path)?;
    let place = |e: Error| Error { what: format!("{}: {}", path.display(), e.what), ..e };
    if restride_torchscript::is_archive(&bytes) {
        return restride_torchscript::weights(&bytes, &options.limits).map(Arc::new).map_err(place);
    }
    let tensors = restride_pt2::tensors::Format::from_path(path).is_ok();
    if tensors {
        return crate::files::read_weights(path).map(Arc::new);
    }
    let inputs = GivenInputs::default();
    let own = OpenOptions { ops: None, weights: None, given_weights: None, inputs, ..options.clone() };
    Ok(open(path, &own)?.weights)
}

fn file_error(path: &Path, e: &std::io::Error) -> Error {
    Error::new(ErrorKind::File, format!("{}: {e}", path.display()))
}

/// Registers custom operators from a file with one schema a line; `#` starts a comment.
fn register(path: &Path) -> Result<Vec<Op>> {
    let text = std::fs::read_to_string(path).map_err(|e| file_error(path, &e))?;
    let mut out = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim();
        if line.is_empty() {
            continue;
        }
        let op = restride_ops::register_custom(line)
            .map_err(|e| Error::new(ErrorKind::File, format!("{}:{}: {e}", path.display(), i + 1)))?;
        out.push(op);
    }
    Ok(out)
}
