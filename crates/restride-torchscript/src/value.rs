//! Values of the evaluated code.

use crate::eval::VariableEnds;
use crate::record::TensorRef;
use crate::source::SourceText;
use crate::syntax::ast::FunctionDef;
use indexmap::IndexMap;
use restride_ir::{DType, Expr, MemoryFormat};
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// A list, shared by all variables that hold it.
pub type ListRef = Rc<Shared<Vec<PyValue>>>;
/// A dictionary, likewise.
pub type DictRef = Rc<Shared<IndexMap<PyKey, PyValue>>>;

thread_local! {
    static MADE: Cell<u64> = const { Cell::new(0) };
}

/// Contents that several variables share, with a number that tells what was made later.
pub struct Shared<T> {
    made: u64,
    content: RefCell<T>,
}

impl<T> Shared<T> {
    /// New contents.
    pub fn new(content: T) -> Shared<T> {
        Shared { made: moment(), content: RefCell::new(content) }
    }

    /// Whether it was made at a moment or later.
    pub fn is_made_since(&self, moment: u64) -> bool {
        self.made >= moment
    }
}

impl<T: Default> Default for Shared<T> {
    fn default() -> Self {
        Shared::new(T::default())
    }
}

impl<T> std::ops::Deref for Shared<T> {
    type Target = RefCell<T>;

    fn deref(&self) -> &RefCell<T> {
        &self.content
    }
}

/// A number larger than those of all contents so far.
pub fn moment() -> u64 {
    MADE.with(|m| {
        m.set(m.get() + 1);
        m.get()
    })
}

/// A value.
#[derive(Clone)]
pub enum PyValue {
    /// `None`
    None,
    /// An int, float or bool, maybe over symbols.
    Num(Expr),
    /// A complex number.
    Complex(f64, f64),
    /// A string.
    Str(Arc<str>),
    /// A device, by name.
    Device(Arc<str>),
    /// An element type, where the text names it (archives have integers).
    DType(DType),
    /// A memory format, likewise.
    MemoryFormat(MemoryFormat),
    /// `torch.strided`
    Strided,
    /// A tensor.
    Tensor(TensorRef),
    /// A list.
    List(ListRef),
    /// In a list: the tensors that a loop on data appended, as rows of one tensor.
    Rows(TensorRef),
    /// A tuple, or a named tuple with its class and the names of its fields.
    Tuple(Rc<[PyValue]>, Option<Rc<Fields>>),
    /// A dictionary.
    Dict(DictRef),
    /// A module, or an object of another class.
    Object(Rc<PyObject>),
    /// A class or a function of the code, by its qualified name.
    Global(Arc<str>),
    /// A method of an object.
    Method(Rc<PyObject>, Arc<str>),
    /// A function of the code.
    Function(Rc<CodeFunction>),
    /// A function or module of Python or PyTorch, by its path.
    Path(Arc<str>),
    /// A method of a value, in FX code.
    Bound(Box<PyValue>, Arc<str>),
    /// A slice of an index.
    Slice(Box<[PyValue; 3]>),
    /// `...`
    Ellipsis,
    /// A value that only some branches gave: an error where it is read.
    Poison(Arc<str>),
    /// A value or `None`, as data decides.
    Maybe(Rc<MaybeSet>),
}

/// A value or `None`.
pub struct MaybeSet {
    /// A tensor that tells whether it is the value.
    pub is_set: TensorRef,
    /// The value.
    pub value: PyValue,
}

/// Class and field names of a named tuple.
#[derive(Debug)]
pub struct Fields {
    /// The class.
    pub class: Arc<str>,
    /// The fields.
    pub names: Vec<Arc<str>>,
}

/// An object with attributes.
pub struct PyObject {
    /// Its class.
    pub class: Arc<str>,
    /// Its path in the module tree, for modules.
    pub path: RefCell<Option<Arc<str>>>,
    /// Its attributes.
    pub attributes: Shared<IndexMap<Arc<str>, PyValue>>,
}

/// A function with the source that it is in.
pub struct CodeFunction {
    /// Its definition.
    pub def: Rc<FunctionDef>,
    /// Where it is.
    pub source: Arc<SourceText>,
    /// Where its variables end, once it was called.
    pub(crate) ends: OnceCell<Rc<VariableEnds>>,
}

impl CodeFunction {
    /// A function.
    pub fn new(def: Rc<FunctionDef>, source: Arc<SourceText>) -> CodeFunction {
        CodeFunction { def, source, ends: OnceCell::new() }
    }
}

/// A key of a dictionary.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum PyKey {
    /// A string.
    Str(Arc<str>),
    /// An integer, or a bool.
    Int(i64),
    /// A float, by its bits.
    Float(u64),
    /// A tensor, by identity.
    Tensor(usize),
}

/// Why a value that `uninitialized(T)` makes cannot be read.
const UNINITIALIZED: &str = "a value that the code never sets";

impl PyValue {
    /// `uninitialized(T)`: the code sets another value before it reads this one.
    pub fn uninitialized() -> PyValue {
        PyValue::Poison(UNINITIALIZED.into())
    }

    /// Whether it is `uninitialized(T)`.
    pub fn is_uninitialized(&self) -> bool {
        matches!(self, PyValue::Poison(why) if **why == *UNINITIALIZED)
    }

    /// An integer.
    pub fn int(i: i64) -> PyValue {
        PyValue::Num(Expr::Int(i))
    }

    /// A bool.
    pub fn bool(b: bool) -> PyValue {
        PyValue::Num(Expr::Bool(b))
    }

    /// A float.
    pub fn float(x: f64) -> PyValue {
        PyValue::Num(Expr::float(x))
    }

    /// A string.
    pub fn str(s: &str) -> PyValue {
        PyValue::Str(s.into())
    }

    /// A list.
    pub fn list(items: Vec<PyValue>) -> PyValue {
        PyValue::List(Rc::new(Shared::new(items)))
    }

    /// A tuple.
    pub fn tuple(items: Vec<PyValue>) -> PyValue {
        PyValue::Tuple(items.into(), None)
    }

    /// A list of integers.
    pub fn ints(items: impl IntoIterator<Item = Expr>) -> PyValue {
        PyValue::list(items.into_iter().map(PyValue::Num).collect())
    }

    /// The items of a list or tuple.
    pub fn items(&self) -> Option<Vec<PyValue>> {
        match self {
            PyValue::List(l) => Some(l.borrow().clone()),
            PyValue::Tuple(t, _) => Some(t.to_vec()),
            _ => None,
        }
    }

    /// The tensor, if it is one.
    pub fn tensor(&self) -> Option<&TensorRef> {
        match self {
            PyValue::Tensor(t) => Some(t),
            _ => None,
        }
    }

    /// What it is, for messages.
    pub fn kind(&self) -> String {
        match self {
            PyValue::None => "None".into(),
            PyValue::Num(e) if e.is_bool() => "a bool".into(),
            PyValue::Num(e) if e.is_float() => "a float".into(),
            PyValue::Num(_) => "an int".into(),
            PyValue::Complex(..) => "a complex".into(),
            PyValue::Str(_) => "a str".into(),
            PyValue::Device(_) => "a device".into(),
            PyValue::DType(_) => "a dtype".into(),
            PyValue::MemoryFormat(_) => "a memory format".into(),
            PyValue::Strided => "a layout".into(),
            PyValue::Tensor(_) => "a tensor".into(),
            PyValue::List(_) => "a list".into(),
            PyValue::Rows(_) => "the items of a list whose length data decides".into(),
            PyValue::Tuple(..) => "a tuple".into(),
            PyValue::Dict(_) => "a dict".into(),
            PyValue::Object(o) => format!("an object of class {}", o.class),
            PyValue::Global(name) => format!("the class or function {name}"),
            PyValue::Path(name) => format!("the function {name}"),
            PyValue::Method(_, name) | PyValue::Bound(_, name) => format!("the method {name}"),
            PyValue::Function(f) => format!("the function {}", f.def.name),
            PyValue::Slice(_) => "a slice".into(),
            PyValue::Ellipsis => "an ellipsis".into(),
            PyValue::Poison(_) => "a value of one branch alone".into(),
            PyValue::Maybe(maybe) => format!("{} or None, as data decides", maybe.value.kind()),
        }
    }

    /// Whether a tensor is in it, at any depth of lists and tuples.
    pub fn has_tensor(&self) -> bool {
        match self {
            PyValue::Tensor(_) | PyValue::Rows(_) => true,
            PyValue::List(l) => l.borrow().iter().any(PyValue::has_tensor),
            PyValue::Tuple(t, _) => t.iter().any(PyValue::has_tensor),
            PyValue::Dict(d) => d.borrow().values().any(PyValue::has_tensor),
            PyValue::Maybe(maybe) => maybe.value.has_tensor(),
            _ => false,
        }
    }
}

impl PyKey {
    /// The key for a value.
    pub fn of(value: &PyValue) -> Option<PyKey> {
        Some(match value {
            PyValue::Str(s) => PyKey::Str(s.clone()),
            PyValue::Num(Expr::Int(i)) => PyKey::Int(*i),
            PyValue::Num(Expr::Bool(b)) => PyKey::Int(i64::from(*b)),
            PyValue::Num(Expr::Float(x)) => PyKey::Float(x.0.to_bits()),
            PyValue::Tensor(t) => PyKey::Tensor(Rc::as_ptr(t) as usize),
            _ => return None,
        })
    }

    /// The value of a key.
    pub fn value(&self) -> PyValue {
        match self {
            PyKey::Str(s) => PyValue::Str(s.clone()),
            PyKey::Int(i) => PyValue::int(*i),
            PyKey::Float(x) => PyValue::float(f64::from_bits(*x)),
            PyKey::Tensor(_) => PyValue::Poison("a tensor as a dictionary's key".into()),
        }
    }
}

/// Keyword arguments.
pub type KeywordArgs = [(Arc<str>, PyValue)];
