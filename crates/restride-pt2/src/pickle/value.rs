use crate::dtype::FileDType;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The contents of a `torch.save` file.
#[derive(Debug, Clone, PartialEq)]
pub struct TorchFile {
    /// The object that was saved.
    pub value: PickleValue,
    /// The storages of its tensors, by key.
    pub storages: BTreeMap<String, TorchStorage>,
}

impl TorchFile {
    /// A storage's bytes; `file` is what [`super::load`] was given.
    pub fn storage_bytes<'a>(&'a self, file: &'a [u8], key: &str) -> Option<&'a [u8]> {
        match &self.storages.get(key)?.bytes {
            StorageBytes::Range(r) => file.get(r.clone()),
            StorageBytes::Owned(b) => Some(b),
        }
    }
}

/// One storage of a `torch.save` file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TorchStorage {
    /// Its size in bytes.
    pub size: u64,
    /// Its content.
    pub bytes: StorageBytes,
}

/// Where a storage's content is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StorageBytes {
    /// In the bytes of the `torch.save` file.
    Range(Range<usize>),
    /// Inflated bytes of a compressed storage.
    Owned(Vec<u8>),
}

/// A tensor: a part of a storage, checked to fit it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PickleTensor {
    /// Element type.
    pub dtype: FileDType,
    /// Sizes.
    pub sizes: Vec<i64>,
    /// Strides, in elements.
    pub strides: Vec<i64>,
    /// Offset into the storage, in elements.
    pub offset: i64,
    /// The storage's key in [`TorchFile::storages`]. Tensors of one key share memory.
    pub storage: Arc<str>,
    /// Whether autograd follows it.
    pub requires_grad: bool,
    /// Whether it is an `nn.Parameter`.
    pub is_parameter: bool,
}

/// A Python object.
#[derive(Debug, Clone, PartialEq)]
pub enum PickleValue {
    /// `None`
    None,
    /// a `bool`
    Bool(bool),
    /// an `int` that fits
    Int(i64),
    /// a `float`
    Float(f64),
    /// a `complex`
    Complex(f64, f64),
    /// a `str`
    Str(Arc<str>),
    /// `bytes` or a `bytearray`
    Bytes(Arc<[u8]>),
    /// a `tuple`
    Tuple(Vec<PickleValue>),
    /// a `list`, or a `collections.deque`
    List(Vec<PickleValue>),
    /// a `set` or `frozenset`
    Set(Vec<PickleValue>),
    /// a `dict`, `OrderedDict` or `defaultdict`, in its order; keys are unique
    Dict(Vec<(PickleValue, PickleValue)>),
    /// a `torch.Size`
    Size(Vec<i64>),
    /// a `torch.dtype`
    DType(FileDType),
    /// a `torch.device`
    Device {
        /// `cpu`, `cuda`, …
        kind: String,
        /// which of them
        index: Option<i64>,
    },
    /// a tensor
    Tensor(Arc<PickleTensor>),
    /// a class or function by itself, or an object made by calling one that is not known here
    Opaque {
        /// `module.name`
        class: Arc<str>,
        /// what it was called with
        args: Vec<PickleValue>,
    },
}

impl PickleValue {
    /// A dictionary's value of a string key.
    pub fn get(&self, key: &str) -> Option<&PickleValue> {
        match self {
            Self::Dict(items) => items.iter().find(|(k, _)| matches!(k, Self::Str(s) if **s == *key)).map(|(_, v)| v),
            _ => None,
        }
    }

    /// Its Python type, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Bool(_) => "a bool",
            Self::Int(_) => "an int",
            Self::Float(_) => "a float",
            Self::Complex(..) => "a complex",
            Self::Str(_) => "a str",
            Self::Bytes(_) => "bytes",
            Self::Tuple(_) => "a tuple",
            Self::List(_) => "a list",
            Self::Set(_) => "a set",
            Self::Dict(_) => "a dict",
            Self::Size(_) => "a torch.Size",
            Self::DType(_) => "a torch.dtype",
            Self::Device { .. } => "a torch.device",
            Self::Tensor(_) => "a tensor",
            Self::Opaque { .. } => "an object of a class that is not known",
        }
    }
}
