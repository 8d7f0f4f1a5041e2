//! Values of the evaluated code.

use crate::record::TensorRef;
use crate::source::Source;
use crate::syntax::ast::FunctionDef;
use indexmap::IndexMap;
use restride_ir::{DType, Expr, MemoryFormat};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// A list, shared by all variables that hold it.
pub type ListRef = Rc<RefCell<Vec<Value>>>;
/// A dictionary, likewise.
pub type DictRef = Rc<RefCell<IndexMap<Key, Value>>>;

/// A value.
#[derive(Clone)]
pub enum Value {
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
    /// A tuple, or a named tuple with its class and the names of its fields.
    Tuple(Rc<[Value]>, Option<Rc<Fields>>),
    /// A dictionary.
    Dict(DictRef),
    /// A module, or an object of another class.
    Object(Rc<Object>),
    /// A class or a function of the code, by its qualified name.
    Global(Arc<str>),
    /// A method of an object.
    Method(Rc<Object>, Arc<str>),
    /// A function of the code.
    Function(Rc<Function>),
    /// A function or module of Python or PyTorch, by its path.
    Path(Arc<str>),
    /// A method of a value, in FX code.
    Bound(Box<Value>, Arc<str>),
    /// A slice of an index.
    Slice(Box<[Value; 3]>),
    /// `...`
    Ellipsis,
    /// A value that only some branches gave: an error where it is read.
    Poison(Arc<str>),
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
pub struct Object {
    /// Its class.
    pub class: Arc<str>,
    /// Its path in the module tree, for modules.
    pub path: RefCell<Option<Arc<str>>>,
    /// Its attributes.
    pub attributes: RefCell<IndexMap<Arc<str>, Value>>,
}

/// A function with the source that it is in.
pub struct Function {
    /// Its definition.
    pub def: Rc<FunctionDef>,
    /// Where it is.
    pub source: Arc<Source>,
}

/// A key of a dictionary.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Key {
    /// A string.
    Str(Arc<str>),
    /// An integer, or a bool.
    Int(i64),
    /// A float, by its bits.
    Float(u64),
    /// A tensor, by identity.
    Tensor(usize),
}

impl Value {
    /// An integer.
    pub fn int(i: i64) -> Value {
        Value::Num(Expr::Int(i))
    }

    /// A bool.
    pub fn bool(b: bool) -> Value {
        Value::Num(Expr::Bool(b))
    }

    /// A float.
    pub fn float(x: f64) -> Value {
        Value::Num(Expr::float(x))
    }

    /// A string.
    pub fn str(s: &str) -> Value {
        Value::Str(s.into())
    }

    /// A list.
    pub fn list(items: Vec<Value>) -> Value {
        Value::List(Rc::new(RefCell::new(items)))
    }

    /// A tuple.
    pub fn tuple(items: Vec<Value>) -> Value {
        Value::Tuple(items.into(), None)
    }

    /// A list of integers.
    pub fn ints(items: impl IntoIterator<Item = Expr>) -> Value {
        Value::list(items.into_iter().map(Value::Num).collect())
    }

    /// The items of a list or tuple.
    pub fn items(&self) -> Option<Vec<Value>> {
        match self {
            Value::List(l) => Some(l.borrow().clone()),
            Value::Tuple(t, _) => Some(t.to_vec()),
            _ => None,
        }
    }

    /// The tensor, if it is one.
    pub fn tensor(&self) -> Option<&TensorRef> {
        match self {
            Value::Tensor(t) => Some(t),
            _ => None,
        }
    }

    /// What it is, for messages.
    pub fn kind(&self) -> String {
        match self {
            Value::None => "None".into(),
            Value::Num(e) if e.is_bool() => "a bool".into(),
            Value::Num(e) if e.is_float() => "a float".into(),
            Value::Num(_) => "an int".into(),
            Value::Complex(..) => "a complex".into(),
            Value::Str(_) => "a str".into(),
            Value::Device(_) => "a device".into(),
            Value::DType(_) => "a dtype".into(),
            Value::MemoryFormat(_) => "a memory format".into(),
            Value::Strided => "a layout".into(),
            Value::Tensor(_) => "a tensor".into(),
            Value::List(_) => "a list".into(),
            Value::Tuple(..) => "a tuple".into(),
            Value::Dict(_) => "a dict".into(),
            Value::Object(o) => format!("an object of class {}", o.class),
            Value::Global(name) => format!("the class or function {name}"),
            Value::Path(name) => format!("the function {name}"),
            Value::Method(_, name) | Value::Bound(_, name) => format!("the method {name}"),
            Value::Function(f) => format!("the function {}", f.def.name),
            Value::Slice(_) => "a slice".into(),
            Value::Ellipsis => "an ellipsis".into(),
            Value::Poison(_) => "a value of one branch alone".into(),
        }
    }

    /// Whether a tensor is in it, at any depth of lists and tuples.
    pub fn has_tensor(&self) -> bool {
        match self {
            Value::Tensor(_) => true,
            Value::List(l) => l.borrow().iter().any(Value::has_tensor),
            Value::Tuple(t, _) => t.iter().any(Value::has_tensor),
            Value::Dict(d) => d.borrow().values().any(Value::has_tensor),
            _ => false,
        }
    }
}

impl Key {
    /// The key for a value.
    pub fn of(value: &Value) -> Option<Key> {
        Some(match value {
            Value::Str(s) => Key::Str(s.clone()),
            Value::Num(Expr::Int(i)) => Key::Int(*i),
            Value::Num(Expr::Bool(b)) => Key::Int(i64::from(*b)),
            Value::Num(Expr::Float(x)) => Key::Float(x.0.to_bits()),
            Value::Tensor(t) => Key::Tensor(Rc::as_ptr(t) as usize),
            _ => return None,
        })
    }

    /// The value of a key.
    pub fn value(&self) -> Value {
        match self {
            Key::Str(s) => Value::Str(s.clone()),
            Key::Int(i) => Value::int(*i),
            Key::Float(x) => Value::float(f64::from_bits(*x)),
            Key::Tensor(_) => Value::Poison("a tensor as a dictionary's key".into()),
        }
    }
}
