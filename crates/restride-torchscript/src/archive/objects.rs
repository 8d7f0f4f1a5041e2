//! The module tree of an archive: pickled objects as values, tensors as inputs of the program.

use super::code::ArchiveCode;
use crate::record::{KnownContent, Recorder, TensorRef};
use crate::value::{PyKey, PyObject, PyValue};
use indexmap::IndexMap;
use restride_exec::eager::Tensor;
use restride_ir::{DType, Error, ErrorKind, InputKind, Result, TensorType, Weight};
use restride_pt2::import::normal_bools;
use restride_pt2::pickle::{ObjectId, PickleObject, PickleObjects, PickleTensor, StorageBytes, TorchStorage};
use restride_tensor::{Bytes, Layout, RawTensor, Storage};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;

/// Deepest nesting of objects.
const MAX_DEPTH: usize = 100;
/// Most elements of a constant whose contents are followed.
const MAX_KNOWN: usize = 4096;

/// Memory that a tensor shows: tensors that show the same are one.
type MemoryKey = (Arc<str>, DType, Vec<i64>, Vec<i64>, i64);

/// Turns pickled objects into values.
pub struct ArchiveObjects<'p> {
    bytes: &'p Bytes,
    pickled: &'p PickleObjects,
    storages: &'p BTreeMap<String, TorchStorage>,
    /// Prefix of storage keys: `data` and `constants` number theirs alike.
    folder: &'static str,
    made: HashMap<ObjectId, PyValue>,
    /// Names and kinds of tensors, by the memory that they show.
    names: HashMap<MemoryKey, (Arc<str>, InputKind)>,
    /// ArchiveObjects whose class puts them together from a state.
    pub pending: Vec<(Rc<PyObject>, PyValue)>,
}

impl<'p> ArchiveObjects<'p> {
    /// ArchiveObjects of a pickle.
    pub fn new(
        bytes: &'p Bytes,
        pickled: &'p PickleObjects,
        storages: &'p BTreeMap<String, TorchStorage>,
        folder: &'static str,
    ) -> Self {
        ArchiveObjects {
            bytes,
            pickled,
            storages,
            folder,
            made: HashMap::new(),
            names: HashMap::new(),
            pending: Vec::new(),
        }
    }

    fn object(&self, id: ObjectId) -> &'p PickleObject {
        &self.pickled.objects[id]
    }

    fn key(&self, t: &PickleTensor, dtype: DType) -> MemoryKey {
        (t.storage.clone(), dtype, t.sizes.clone(), t.strides.clone(), t.offset)
    }

    /// The attributes of an object, by name.
    fn state(&self, id: ObjectId) -> Option<Vec<(Arc<str>, ObjectId)>> {
        let state = *self.pickled.states.get(&id)?;
        let PickleObject::Dict(items) = self.object(state) else { return None };
        items
            .iter()
            .map(|(k, v)| match self.object(*k) {
                PickleObject::Str(s) => Some((s.clone(), *v)),
                _ => None,
            })
            .collect()
    }

    /// Names the tensors that are attributes of modules, by their paths from the root.
    ///
    /// # Errors
    /// ArchiveCode that does not parse.
    pub fn name_tensors(&mut self, code: &ArchiveCode, id: ObjectId, path: &str, depth: usize) -> Result<()> {
        let PickleObject::Opaque(class, _) = self.object(id) else { return Ok(()) };
        if depth > MAX_DEPTH {
            return Err(Error::new(ErrorKind::Limit, "modules nested too deep"));
        }
        let Some(attributes) = self.state(id) else { return Ok(()) };
        let info = code.class(class)?;
        let join = |name: &str| if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
        for (name, value) in &attributes {
            let PickleObject::Tensor(t) = self.object(*value) else { continue };
            let Some(dtype) = DType::from_name(t.dtype.name()) else { continue };
            let full: Arc<str> = join(name).into();
            let listed = |list: fn(&crate::eval::ClassInfo) -> &Vec<Arc<str>>| {
                info.as_ref().is_some_and(|i| list(i).contains(name))
            };
            let kind = if listed(|i| &i.parameters) || t.requires_grad {
                InputKind::Parameter(full.clone())
            } else {
                InputKind::Buffer { name: full.clone(), persistent: listed(|i| &i.buffers) }
            };
            self.names.entry(self.key(t, dtype)).or_insert((full, kind));
        }
        for (name, value) in attributes {
            self.name_tensors(code, value, &join(&name), depth + 1)?;
        }
        Ok(())
    }

    /// The value of an object.
    ///
    /// # Errors
    /// ArchiveObjects that TorchScript does not write.
    pub fn value(&mut self, rec: &mut Recorder<'_>, id: ObjectId, path: &str, depth: usize) -> Result<PyValue> {
        if let Some(value) = self.made.get(&id) {
            return Ok(value.clone());
        }
        if depth > MAX_DEPTH {
            return Err(Error::new(ErrorKind::Limit, "objects nested too deep"));
        }
        let join = |name: &str| if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
        let items = |me: &mut Self, rec: &mut Recorder<'_>, ids: &[ObjectId]| -> Result<Vec<PyValue>> {
            ids.iter().enumerate().map(|(i, v)| me.value(rec, *v, &join(&i.to_string()), depth + 1)).collect()
        };
        let value = match self.object(id) {
            PickleObject::None => PyValue::None,
            PickleObject::Bool(b) => PyValue::bool(*b),
            PickleObject::Int(i) => PyValue::int(*i),
            PickleObject::Float(x) => PyValue::float(*x),
            PickleObject::Complex(re, im) => PyValue::Complex(*re, *im),
            PickleObject::Str(s) => PyValue::Str(s.clone()),
            PickleObject::Tuple(ids) => PyValue::tuple(items(self, rec, ids)?),
            PickleObject::List(ids) | PickleObject::Set(ids) => {
                let list = PyValue::list(Vec::new());
                self.made.insert(id, list.clone());
                let all = items(self, rec, ids)?;
                if let PyValue::List(l) = &list {
                    *l.borrow_mut() = all;
                }
                list
            }
            PickleObject::Dict(pairs) => {
                let mut out = IndexMap::new();
                for (k, v) in pairs {
                    let key = self.value(rec, *k, path, depth + 1)?;
                    let key = PyKey::of(&key).ok_or_else(|| Error::unsupported("a dictionary with such keys"))?;
                    let name = if let PyKey::Str(s) = &key { s.to_string() } else { "item".into() };
                    out.insert(key, self.value(rec, *v, &join(&name), depth + 1)?);
                }
                PyValue::Dict(Rc::new(crate::value::Shared::new(out)))
            }
            PickleObject::Size(sizes) => PyValue::list(sizes.iter().map(|i| PyValue::int(*i)).collect()),
            PickleObject::Device(..) => PyValue::Device("cpu".into()),
            PickleObject::Tensor(t) => self.tensor(rec, t, path)?,
            PickleObject::Opaque(class, args) if class.starts_with("torch.jit._pickle.") => match args[..] {
                // A list with its element type.
                [inner, ..] => self.value(rec, inner, path, depth + 1)?,
                [] => PyValue::Poison(format!("an object of {class}").into()),
            },
            // A member of an enumeration is its value.
            PickleObject::Opaque(class, args)
                if class.starts_with("__torch__") && args.len() == 1 && !self.pickled.states.contains_key(&id) =>
            {
                self.value(rec, args[0], path, depth + 1)?
            }
            PickleObject::Opaque(class, _) if class.starts_with("__torch__") => {
                let object = Rc::new(PyObject {
                    class: class.clone(),
                    path: RefCell::new(Some(path.into())),
                    attributes: Default::default(),
                });
                let value = PyValue::Object(object.clone());
                self.made.insert(id, value.clone());
                match (self.state(id), self.pickled.states.get(&id)) {
                    (Some(attributes), _) => {
                        for (name, v) in attributes {
                            let v = self.value(rec, v, &join(&name), depth + 1)?;
                            object.attributes.borrow_mut().insert(name, v);
                        }
                    }
                    (None, Some(&state)) => {
                        let state = self.value(rec, state, path, depth + 1)?;
                        self.pending.push((object, state));
                    }
                    (None, None) => {}
                }
                value
            }
            PickleObject::Opaque(class, _) | PickleObject::Global(class) => {
                PyValue::Poison(format!("an attribute of class {class}").into())
            }
            other => {
                PyValue::Poison(format!("an attribute that is {other:?}").chars().take(80).collect::<String>().into())
            }
        };
        self.made.insert(id, value.clone());
        Ok(value)
    }

    /// A tensor as an input of the program.
    fn tensor(&mut self, rec: &mut Recorder<'_>, t: &Arc<PickleTensor>, path: &str) -> Result<PyValue> {
        let Some(dtype) = DType::from_name(t.dtype.name()) else {
            return Ok(PyValue::Poison(format!("a tensor of element type {}", t.dtype.name()).into()));
        };
        let key = self.key(t, dtype);
        let constant = self.folder == "constants";
        let (name, kind) = match self.names.get(&key) {
            Some(named) => named.clone(),
            None if constant => (Arc::from(path), InputKind::Constant(path.into())),
            None => (Arc::from(path), InputKind::Buffer { name: path.into(), persistent: false }),
        };
        let layout = Layout::strided(&t.sizes, &t.strides, t.offset);
        let storage_key = format!("{}/{}", self.folder, t.storage);
        if let Some(found) = rec.weight_ref(&name) {
            return Ok(PyValue::Tensor(found));
        }
        let storage = match rec.weight_storage(&storage_key) {
            Some(at) => at,
            None => {
                let bytes = self.bytes_of(&t.storage, dtype)?;
                rec.add_storage(storage_key, bytes)
            }
        };
        let weight = Weight {
            storage,
            dtype,
            layout: layout.clone(),
            is_param: matches!(kind, InputKind::Parameter(_)),
            requires_grad: t.requires_grad,
        };
        let made = rec.weight(&name, kind, weight)?;
        if constant && layout.numel() <= MAX_KNOWN as i64 {
            self.follow(rec, &made, t, dtype, layout)?;
        }
        Ok(PyValue::Tensor(made))
    }

    fn bytes_of(&self, key: &str, dtype: DType) -> Result<Bytes> {
        let missing = || Error::new(ErrorKind::File, format!("the archive has no data for the storage {key}"));
        let bytes = match &self.storages.get(key).ok_or_else(missing)?.bytes {
            // Elements must be aligned where they are.
            StorageBytes::Range(r) if r.start.is_multiple_of(16) => self.bytes.slice(r.clone()).ok_or_else(missing)?,
            StorageBytes::Range(r) => Bytes::copy_of(self.bytes.get(r.clone()).ok_or_else(missing)?),
            StorageBytes::Owned(b) => Bytes::copy_of(b),
        };
        Ok(match normal_bools(&bytes) {
            Some(normal) if dtype == DType::Bool => Bytes::copy_of(&normal),
            _ => bytes,
        })
    }

    /// Notes the contents of a small constant.
    fn follow(
        &self,
        rec: &Recorder<'_>,
        made: &TensorRef,
        t: &PickleTensor,
        dtype: DType,
        layout: Layout,
    ) -> Result<()> {
        let bytes = self.bytes_of(&t.storage, dtype)?;
        let storage = Storage::from_bytes(Bytes::copy_of(&bytes));
        if let Some(raw) = RawTensor::new(storage, dtype, layout) {
            rec.set_known(made, KnownContent::Data(Tensor::copy_of(&raw)?));
        }
        Ok(())
    }
}

/// The type of a pickled tensor.
pub fn type_of(t: &PickleTensor) -> Option<TensorType<i64>> {
    let dtype = DType::from_name(t.dtype.name())?;
    Some(TensorType::new(dtype, Layout::strided(&t.sizes, &t.strides, 0)))
}
