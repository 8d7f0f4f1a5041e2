//! Archives of `torch.jit.save`.

pub(crate) mod code;
pub(crate) mod debug;
mod objects;
mod state;

use crate::eval::{Definition, Dialect, Evaluator, Library};
use crate::given::{GivenInputs, GivenValue};
use crate::inputs::bind;
use crate::record::Recorder;
use crate::value::{PyObject, PyValue};
use code::ArchiveCode;
use objects::ArchiveObjects;
use restride_ir::{Error, ErrorKind, Limits, Op, Program, Result};
use restride_pt2::pickle::{self, ObjectId, PickleObject, PickleObjects, TorchStorage};
use restride_pt2::zip::ZipReader;
use restride_tensor::Bytes;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// How to read an archive or a text.
#[derive(Clone, Copy)]
pub struct RecordOptions<'a> {
    /// The method to read, `forward` if none is named; of a text with several graphs, the number from 1.
    pub method: Option<&'a str>,
    /// Finds an operator by its full name (`aten.add.Tensor`).
    pub lookup: &'a dyn Fn(&str) -> Option<Op>,
    /// Limits on resources of the archive and its program.
    pub limits: Limits,
    /// Inputs that the program is recorded for.
    pub inputs: &'a GivenInputs,
}

/// Whether a zip is an archive of `torch.jit.save`.
pub fn is_archive(bytes: &[u8]) -> bool {
    ZipReader::open(bytes).is_ok_and(|zip| root_of(&zip).is_some())
}

/// The folder of an archive: all its entries are below it.
fn root_of(zip: &ZipReader<'_>) -> Option<String> {
    let constants = zip.entries().iter().find_map(|e| e.name.strip_suffix("constants.pkl").map(str::to_string));
    let root = constants?;
    zip.entry(&format!("{root}data.pkl"))?;
    zip.entries().iter().any(|e| e.name.starts_with(&format!("{root}code/"))).then_some(root)
}

/// What an archive holds.
pub(crate) struct SavedModule<'b> {
    bytes: &'b Bytes,
    code: ArchiveCode,
    version: u64,
    data: (PickleObjects, BTreeMap<String, TorchStorage>),
    constants: (PickleObjects, BTreeMap<String, TorchStorage>),
    /// Types of the inputs that a trace was made with, by method.
    traced: Option<PickleObjects>,
}

/// Reads a program out of an archive of `torch.jit.save`.
///
/// # Errors
/// A file that is damaged; code that restride does not support, with its file and line; inputs without types.
pub fn import(bytes: &Bytes, name: &str, options: &RecordOptions<'_>) -> Result<Program> {
    let zip = ZipReader::with_limits(bytes, &options.limits).map_err(Error::from)?;
    let root = root_of(&zip)
        .ok_or_else(|| Error::new(ErrorKind::File, "the zip is no archive of torch.jit.save: it has no code"))?;
    let mut texts = Vec::new();
    for entry in zip.entries() {
        let Some(path) = entry.name.strip_prefix(&root) else { continue };
        if !path.starts_with("code/") || !path.ends_with(".py") {
            continue;
        }
        let text = zip.read(entry).map_err(Error::from)?;
        let text = String::from_utf8(text.into_owned())
            .map_err(|_| Error::new(ErrorKind::File, format!("{path} is no UTF-8")))?;
        let lines = format!("{}.debug_pkl", entry.name);
        let debug = zip.entry(&lines).map(|_| debug::DebugSource::new(bytes.clone(), lines));
        texts.push((path.to_string(), text, debug));
    }
    let version = ["version", ".data/version"].iter().find_map(|n| zip.entry(&format!("{root}{n}")));
    let version = match version {
        Some(entry) => {
            let text = zip.read(entry).map_err(Error::from)?;
            std::str::from_utf8(&text).ok().and_then(|t| t.trim().parse().ok())
        }
        None => None,
    };
    let objects = |name: &str| pickle::load_objects(&zip, &root, name, Some(name)).map_err(Error::from);
    let traced = pickle::load_objects(&zip, &root, "traced_inputs", None).ok().map(|t| t.0);
    let contents = SavedModule {
        bytes,
        code: ArchiveCode::new(texts),
        version: version.unwrap_or(1),
        data: objects("data")?,
        constants: objects("constants")?,
        traced,
    };
    state::record(&contents, name, options)
}

/// The tensors of an archive's modules, by their names in the state dict.
///
/// # Errors
/// A file that is damaged.
pub fn weights(bytes: &Bytes, limits: &Limits) -> Result<restride_ir::Weights> {
    let zip = ZipReader::with_limits(bytes, limits).map_err(Error::from)?;
    let root = root_of(&zip).ok_or_else(|| Error::new(ErrorKind::File, "no archive of torch.jit.save"))?;
    let data = pickle::load_objects(&zip, &root, "data", Some("data")).map_err(Error::from)?;
    let code = ArchiveCode::new([]);
    let none = |_: &str| None;
    let mut rec = Recorder::new("weights", *limits, &none);
    let mut objects = ArchiveObjects::new(bytes, &data.0, &data.1, "data");
    objects.name_tensors(&code, data.0.root, "", 0)?;
    objects.value(&mut rec, data.0.root, "", 0)?;
    Ok(rec.into_weights())
}

/// One evaluation of an archive's method, set up.
pub(crate) struct Evaluation<'a, 'l> {
    pub eval: Evaluator<'a, 'l>,
    pub root: Rc<PyObject>,
}

impl<'b> SavedModule<'b> {
    /// Sets up an evaluation: the module tree with its tensors as inputs of a new program.
    pub(crate) fn session<'a, 'l>(&'l self, name: &str, options: &RecordOptions<'a>) -> Result<Evaluation<'a, 'l>> {
        let mut rec = Recorder::new(name, options.limits, options.lookup);
        let mut constants = ArchiveObjects::new(self.bytes, &self.constants.0, &self.constants.1, "constants");
        let values = match constants.value(&mut rec, self.constants.0.root, "constants", 0)? {
            PyValue::Tuple(items, _) => items.to_vec(),
            PyValue::None => Vec::new(),
            other => vec![other],
        };
        self.code.set_constants(values);
        let mut objects = ArchiveObjects::new(self.bytes, &self.data.0, &self.data.1, "data");
        objects.name_tensors(&self.code, self.data.0.root, "", 0)?;
        let root = match objects.value(&mut rec, self.data.0.root, "", 0)? {
            PyValue::Object(root) => root,
            other => return Err(Error::new(ErrorKind::File, format!("the archive holds {}, no module", other.kind()))),
        };
        let pending = std::mem::take(&mut objects.pending);
        let mut eval = Evaluator::new(rec, &self.code, Dialect::TorchScript(self.version));
        for (object, state) in pending {
            if eval.has_method(&object, "__setstate__")? {
                eval.call_method(&object, "__setstate__", vec![state], Vec::new())?;
            }
        }
        Ok(Evaluation { eval, root })
    }

    /// Types of the inputs that a method was traced with.
    fn recorded(&self, method: &str) -> Option<Vec<GivenValue>> {
        let traced = self.traced.as_ref()?;
        let PickleObject::Dict(items) = inner(traced, traced.root) else { return None };
        let (_, list) =
            items.iter().find(|(k, _)| matches!(&traced.objects[*k], PickleObject::Str(s) if **s == *method))?;
        match given(traced, *list, 0)? {
            GivenValue::List(items) | GivenValue::Tuple(items) => Some(items),
            _ => None,
        }
    }
}

/// The object behind a type tag.
fn inner(p: &PickleObjects, mut id: ObjectId) -> &PickleObject {
    loop {
        match &p.objects[id] {
            PickleObject::Opaque(class, args) if class.starts_with("torch.jit._pickle.") && !args.is_empty() => {
                // A tag's object was made before the tag.
                if args[0] >= id {
                    return &p.objects[id];
                }
                id = args[0];
            }
            other => return other,
        }
    }
}

/// A recorded input as a type.
fn given(p: &PickleObjects, id: ObjectId, depth: usize) -> Option<GivenValue> {
    use restride_ir::Scalar;
    if depth > 32 {
        return None;
    }
    let many = |ids: &[ObjectId]| ids.iter().map(|i| given(p, *i, depth + 1)).collect::<Option<Vec<_>>>();
    Some(match inner(p, id) {
        PickleObject::None => GivenValue::None,
        PickleObject::Bool(b) => GivenValue::Number(Scalar::Bool(*b)),
        PickleObject::Int(i) => GivenValue::Number(Scalar::Int(*i)),
        PickleObject::Float(x) => GivenValue::Number(Scalar::Float(*x)),
        PickleObject::Str(s) => GivenValue::Str(s.clone()),
        PickleObject::Tensor(t) => {
            let ty = objects::type_of(t)?;
            GivenValue::Tensor(ty.dtype, ty.layout)
        }
        PickleObject::List(ids) => GivenValue::List(many(ids)?),
        PickleObject::Tuple(ids) => GivenValue::Tuple(many(ids)?),
        PickleObject::Dict(pairs) => {
            let mut out: Vec<(Arc<str>, GivenValue)> = Vec::new();
            for (k, v) in pairs {
                let PickleObject::Str(k) = &p.objects[*k] else { return None };
                out.push((k.clone(), given(p, *v, depth + 1)?));
            }
            GivenValue::Dict(out)
        }
        _ => return None,
    })
}

impl Evaluation<'_, '_> {
    /// Makes inputs for the parameters of a method.
    pub(crate) fn bind(
        &mut self,
        contents: &SavedModule<'_>,
        options: &RecordOptions<'_>,
    ) -> Result<crate::inputs::Bound> {
        let method = options.method.unwrap_or("forward");
        let class = self.root.class.clone();
        let found = match contents.code.find(&class)? {
            Some(Definition::Class(info)) => info,
            _ => return Err(Error::new(ErrorKind::File, format!("the archive has no code of its class {class}"))),
        };
        let Some(function) = found.methods.get(method) else {
            let mut names: Vec<&str> = found.methods.keys().map(|n| &**n).collect();
            names.sort_unstable();
            return Err(Error::new(ErrorKind::File, format!("the module has no method {method}"))
                .help(format!("its methods are {}; choose one with --model", names.join(", "))));
        };
        let params = &function.def.params[1.min(function.def.params.len())..];
        let recorded = contents.recorded(method);
        bind(&mut self.eval, params, options.inputs, recorded.as_deref())
    }
}
