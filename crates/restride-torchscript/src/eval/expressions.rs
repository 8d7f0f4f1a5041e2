//! Expressions.

use super::{Definition, Env, Evaluator, numbers};
use crate::syntax::ast::{Ast, AstKind};
use crate::value::{Fields, PyKey, PyObject, PyValue};
use indexmap::IndexMap;
use restride_ir::{Error, ErrorKind, Expr, Result};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// An error in the words of Python.
pub(crate) fn refused(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Program, what)
}

/// Functions that print their arguments, which is not done.
const PRINTS: [&str; 4] = ["print", "ops.prim.Print", "warnings.warn", "torch.warn"];

impl Evaluator<'_, '_> {
    /// The value of an expression.
    pub(crate) fn expression(&mut self, env: &mut Env, ast: &Ast) -> Result<PyValue> {
        match &ast.kind {
            AstKind::None => Ok(PyValue::None),
            AstKind::Bool(b) => Ok(PyValue::bool(*b)),
            AstKind::Int(i) => Ok(PyValue::int(*i)),
            AstKind::Float(x) => Ok(PyValue::float(*x)),
            AstKind::Imaginary(x) => Ok(PyValue::Complex(0.0, *x)),
            AstKind::Str(s) => Ok(PyValue::Str(s.clone())),
            AstKind::Ellipsis => Ok(PyValue::Ellipsis),
            AstKind::Name(name) => self.name(env, name),
            AstKind::Attr(base, name) => self.attribute_of(env, ast, base, name),
            AstKind::Call { callee, args, kwargs } => self.call_expression(env, callee, args, kwargs),
            AstKind::Index(base, index) => {
                let base = self.expression(env, base)?;
                let index = self.index_value(env, index)?;
                self.get_item(base, index)
            }
            AstKind::Slice(..) => self.index_value(env, ast),
            AstKind::Tuple(items) => {
                let items = items.iter().map(|i| self.expression(env, i)).collect::<Result<Vec<_>>>()?;
                Ok(PyValue::tuple(items))
            }
            AstKind::List(items) => {
                let items = items.iter().map(|i| self.expression(env, i)).collect::<Result<Vec<_>>>()?;
                Ok(PyValue::list(items))
            }
            AstKind::Dict(items) => {
                let mut out = IndexMap::new();
                for (k, v) in items {
                    let key = self.expression(env, k)?;
                    let key = self.key(&key)?;
                    out.insert(key, self.expression(env, v)?);
                }
                Ok(PyValue::Dict(Rc::new(crate::value::Shared::new(out))))
            }
            AstKind::Binary(op, a, b) => {
                let a = self.expression(env, a)?;
                let b = self.expression(env, b)?;
                self.operator_call(op, a, b)
            }
            AstKind::Unary(op, a) => {
                let a = self.expression(env, a)?;
                self.unary_call(op, a)
            }
            AstKind::Logic { and, left, right } => {
                let left = self.expression(env, left)?;
                match self.truth(left.clone())? {
                    super::branches::Truth::Known(b) if b == *and => self.expression(env, right),
                    super::branches::Truth::Known(_) => Ok(left),
                    _ => {
                        let right = self.expression(env, right)?;
                        self.operator_call(if *and { "and_" } else { "or_" }, left, right)
                    }
                }
            }
            AstKind::Choice(value, condition, other) => {
                let condition = self.expression(env, condition)?;
                match self.truth(condition)? {
                    super::branches::Truth::Known(true) => self.expression(env, value),
                    super::branches::Truth::Known(false) => self.expression(env, other),
                    _ => Err(Error::unsupported("a conditional expression on the contents of a tensor")),
                }
            }
            AstKind::Comprehension(body, target, iter, condition) => {
                let over = self.expression(env, iter)?;
                let mut out = Vec::new();
                let mut inside = env.inside();
                for item in self.unpacked(&over)? {
                    self.step(1)?;
                    self.assign(&mut inside, target, item)?;
                    if let Some(condition) = condition {
                        let holds = self.expression(&mut inside, condition)?;
                        if !matches!(self.truth(holds)?, super::branches::Truth::Known(true)) {
                            continue;
                        }
                    }
                    out.push(self.expression(&mut inside, body)?);
                }
                Ok(PyValue::list(out))
            }
        }
    }

    /// Calls a method of an object.
    pub(crate) fn call_method(
        &mut self,
        object: &Rc<PyObject>,
        name: &str,
        args: Vec<PyValue>,
        kwargs: Vec<(Arc<str>, PyValue)>,
    ) -> Result<PyValue> {
        let method = match self.library.find(&object.class)? {
            Some(Definition::Class(info)) => info.methods.get(name).cloned(),
            _ => None,
        };
        let Some(method) = method else {
            return Err(Error::new(ErrorKind::File, format!("the class {} has no method {name}", object.class)));
        };
        let outer = self.rec.module.clone();
        if let Some(path) = &*object.path.borrow()
            && !path.is_empty()
        {
            self.rec.module = Some(path.clone());
        }
        let mut all = Vec::with_capacity(args.len() + 1);
        all.push(PyValue::Object(object.clone()));
        all.extend(args);
        let out = self.call_function(&method, all, kwargs);
        self.rec.module = outer;
        out
    }

    fn call_expression(
        &mut self,
        env: &mut Env,
        callee: &Ast,
        args: &[(Ast, bool)],
        kwargs: &[(Arc<str>, Ast)],
    ) -> Result<PyValue> {
        if let AstKind::Name(name) = &callee.kind
            && !env.vars.contains_key(name)
            && let Some(value) = self.special_form(env, name, args)?
        {
            return Ok(value);
        }
        if let AstKind::Attr(base, _) = &callee.kind
            && matches!(&base.kind, AstKind::Name(n) if !env.vars.contains_key(n))
            && let Some(name) = callee.dotted()
            && let Some(value) = self.pytree_call(env, &name, args)?
        {
            return Ok(value);
        }
        let function = self.expression(env, callee)?;
        let mut values = Vec::with_capacity(args.len());
        for (arg, star) in args {
            let value = self.expression(env, arg)?;
            if *star {
                values.extend(self.unpacked(&value)?);
            } else {
                values.push(value);
            }
        }
        let mut named = Vec::with_capacity(kwargs.len());
        for (name, arg) in kwargs {
            let value = self.expression(env, arg)?;
            if &**name != "**" {
                named.push((name.clone(), value));
                continue;
            }
            let PyValue::Dict(d) = value else { return Err(refused("** of something other than a dictionary")) };
            for (k, v) in d.borrow().iter() {
                let PyKey::Str(k) = k else { return Err(refused("keywords must be strings")) };
                named.push((k.clone(), v.clone()));
            }
        }
        self.call_value(function, values, named)
    }

    /// Calls a value.
    pub(crate) fn call_value(
        &mut self,
        function: PyValue,
        args: Vec<PyValue>,
        kwargs: Vec<(Arc<str>, PyValue)>,
    ) -> Result<PyValue> {
        self.step(1)?;
        if matches!(&function, PyValue::Path(path) if PRINTS.contains(&&**path)) {
            return Ok(PyValue::None);
        }
        for value in args.iter().chain(kwargs.iter().map(|k| &k.1)) {
            if let PyValue::Poison(why) = value {
                return Err(Error::unsupported(why.to_string()));
            }
        }
        match function {
            PyValue::Path(path) => self.call_path(&path, args, kwargs),
            PyValue::Bound(base, name) => self.value_method(*base, &name, args, kwargs),
            PyValue::Method(object, name) => self.call_method(&object, &name, args, kwargs),
            PyValue::Function(f) => self.call_function(&f, args, kwargs),
            PyValue::Object(object) => self.call_object(&object, args, kwargs),
            PyValue::Global(name) => match self.library.find(&name)? {
                Some(Definition::Function(f)) => self.call_function(&f, args, kwargs),
                Some(Definition::Class(info)) => match info.base.as_deref() {
                    Some("NamedTuple") => {
                        let names: Vec<Arc<str>> = info.fields.iter().map(|(n, _)| n.clone()).collect();
                        let mut items = args;
                        for name in names.iter().skip(items.len()) {
                            let value = kwargs.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone());
                            items.push(value.ok_or_else(|| refused(format!("{} is not given {name}", info.name)))?);
                        }
                        Ok(PyValue::Tuple(items.into(), Some(Rc::new(Fields { class: info.name.clone(), names }))))
                    }
                    _ => {
                        let object = self.new_object(&info.name);
                        if info.methods.contains_key("__init__") {
                            self.call_method(&object, "__init__", args, kwargs)?;
                        }
                        Ok(PyValue::Object(object))
                    }
                },
                None => Err(Error::new(ErrorKind::File, format!("the code has no {name}"))),
            },
            other => Err(refused(format!("{} is called", other.kind()))),
        }
    }

    fn call_object(
        &mut self,
        object: &Rc<PyObject>,
        args: Vec<PyValue>,
        kwargs: Vec<(Arc<str>, PyValue)>,
    ) -> Result<PyValue> {
        if self.has_method(object, "forward")? {
            return self.call_method(object, "forward", args, kwargs);
        }
        self.call_module(object, args, kwargs)
    }

    /// An object without attributes.
    pub(crate) fn new_object(&self, class: &Arc<str>) -> Rc<PyObject> {
        Rc::new(PyObject { class: class.clone(), path: RefCell::new(None), attributes: Default::default() })
    }

    /// Forms whose arguments are types, or that Python knows by name.
    fn special_form(&mut self, env: &mut Env, name: &str, args: &[(Ast, bool)]) -> Result<Option<PyValue>> {
        Ok(Some(match (name, args) {
            ("annotate" | "unchecked_cast", [(ty, _), (value, _)]) => match self.expression(env, value)? {
                // The code has asked before whether it is set.
                PyValue::Maybe(maybe) if name == "unchecked_cast" => maybe.value.clone(),
                value => self.annotated(ty, value)?,
            },
            ("uninitialized", [_]) => PyValue::uninitialized(),
            ("isinstance", [(value, _), (ty, _)]) => {
                let value = self.expression(env, value)?;
                PyValue::bool(self.is_instance(&value, ty)?)
            }
            ("unchecked_unwrap_optional" | "unwrap_optional", [(value, _)]) => self.unwrapped(env, value)?,
            ("getattr", [(value, _), (name, _), default @ ..]) => {
                let value = self.expression(env, value)?;
                let PyValue::Str(name) = self.expression(env, name)? else {
                    return Err(refused("getattr of something other than a name"));
                };
                match (self.get_attribute(&value, &name), default) {
                    (Err(_), [(default, _)]) => self.expression(env, default)?,
                    (found, _) => found?,
                }
            }
            // A module of an FX graph, of which the text may know no more than its path.
            ("restride_module", [(root, _), (path, _), class @ ..]) => {
                let AstKind::Str(path) = &path.kind else { return Err(refused("a module without a path")) };
                let mut value = self.expression(env, root)?;
                if let ([(class, _)], PyValue::Object(root)) = (class, &value)
                    && let AstKind::Str(class) = &class.kind
                {
                    return self.module_of_class(root, path, class).map(|m| Some(PyValue::Object(m)));
                }
                for part in path.split('.') {
                    value = match self.get_attribute(&value, &part.into()) {
                        Ok(found @ PyValue::Object(_)) => found,
                        _ => {
                            let module = self.new_object(&"unknown".into());
                            *module.path.borrow_mut() = Some(path.clone());
                            return Ok(Some(PyValue::Object(module)));
                        }
                    };
                }
                value
            }
            ("hasattr", [(value, _), (name, _)]) => {
                let value = self.expression(env, value)?;
                let AstKind::Str(name) = &name.kind else { return Err(refused("hasattr of a computed name")) };
                PyValue::bool(self.get_attribute(&value, name).is_ok())
            }
            _ => return Ok(None),
        }))
    }

    /// A module below another one, of a class that the text declares.
    fn module_of_class(&mut self, root: &Rc<PyObject>, name: &Arc<str>, class: &Arc<str>) -> Result<Rc<PyObject>> {
        if let Some(PyValue::Object(found)) = root.attributes.borrow().get(name) {
            return Ok(found.clone());
        }
        let module = self.new_object(class);
        let above = root.path.borrow().clone().unwrap_or_default();
        let path = if above.is_empty() { name.to_string() } else { format!("{above}.{name}") };
        *module.path.borrow_mut() = Some(path.into());
        root.attributes.borrow_mut().insert(name.clone(), PyValue::Object(module.clone()));
        Ok(module)
    }

    fn unwrapped(&mut self, env: &mut Env, value: &Ast) -> Result<PyValue> {
        match self.expression(env, value)? {
            PyValue::None => Err(refused("Unwrapping null optional")),
            PyValue::Maybe(maybe) => {
                self.require(PyValue::Tensor(maybe.is_set.clone()), "Unwrapping null optional")?;
                Ok(maybe.value.clone())
            }
            value => Ok(value),
        }
    }

    /// A value of a declared type: tensors become the numbers that they are declared as, also in tuples and lists.
    pub(crate) fn annotated(&mut self, ty: &Ast, value: PyValue) -> Result<PyValue> {
        if let AstKind::Index(base, inner) = &ty.kind {
            return Ok(match (base.dotted().as_deref(), &inner.kind, &value) {
                (Some("Optional"), _, _) => self.annotated(inner, value)?,
                (Some("Tuple"), AstKind::Tuple(types), PyValue::Tuple(items, fields)) if types.len() == items.len() => {
                    let items = types.iter().zip(items.iter());
                    let items = items.map(|(ty, v)| self.annotated(ty, v.clone())).collect::<Result<Vec<_>>>()?;
                    PyValue::Tuple(items.into(), fields.clone())
                }
                (Some("List"), _, PyValue::List(list)) => {
                    let old = list.borrow().clone();
                    let items: Vec<PyValue> =
                        old.iter().map(|v| self.annotated(inner, v.clone())).collect::<Result<_>>()?;
                    if !old.iter().zip(&items).all(|(a, b)| super::branches::same(a, b)) {
                        self.note_list(list);
                        *list.borrow_mut() = items;
                    }
                    value
                }
                _ => value,
            });
        }
        let PyValue::Tensor(t) = &value else { return Ok(value) };
        Ok(match ty.dotted().as_deref() {
            Some("int") => PyValue::Num(numbers::to_int(&self.rec.item(t)?)?),
            Some("float") => PyValue::Num(numbers::to_float(&self.rec.item(t)?)),
            Some("bool") => PyValue::Num(numbers::truth(&self.rec.item(t)?)),
            Some("number") => PyValue::Num(self.rec.item(t)?),
            _ => value,
        })
    }

    /// Whether a value is of a type.
    pub(crate) fn is_instance(&self, value: &PyValue, ty: &Ast) -> Result<bool> {
        let all = |items: &[PyValue], ty: &Ast| -> Result<bool> {
            for item in items {
                if !self.is_instance(item, ty)? {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        match &ty.kind {
            AstKind::None => Ok(matches!(value, PyValue::None)),
            AstKind::List(types) | AstKind::Tuple(types) => {
                for ty in types {
                    if self.is_instance(value, ty)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            AstKind::Index(base, inner) => match (base.dotted().unwrap_or_default().as_str(), value) {
                ("List" | "list", PyValue::List(l)) => all(&l.borrow(), inner),
                ("Optional", PyValue::None) => Ok(true),
                ("Optional", _) => self.is_instance(value, inner),
                ("Union", _) => self.is_instance(value, inner),
                ("Tuple" | "tuple", PyValue::Tuple(items, _)) => match &inner.kind {
                    AstKind::Tuple(types) if types.len() == items.len() => {
                        for (item, ty) in items.iter().zip(types) {
                            if !self.is_instance(item, ty)? {
                                return Ok(false);
                            }
                        }
                        Ok(true)
                    }
                    AstKind::Tuple(_) => Ok(false),
                    _ => Ok(items.len() == 1 && self.is_instance(&items[0], inner)?),
                },
                ("Dict" | "dict", PyValue::Dict(d)) => {
                    let AstKind::Tuple(types) = &inner.kind else { return Ok(true) };
                    let d = d.borrow();
                    let values: Vec<PyValue> = d.values().cloned().collect();
                    let keys: Vec<PyValue> = d.keys().map(PyKey::value).collect();
                    Ok(match &types[..] {
                        [k, v] => all(&keys, k)? && all(&values, v)?,
                        _ => true,
                    })
                }
                _ => Ok(false),
            },
            _ => {
                let Some(name) = ty.dotted() else { return Err(refused("a type that is no name")) };
                Ok(match (name.as_str(), value) {
                    ("Any", _) => true,
                    ("Tensor" | "torch.Tensor", PyValue::Tensor(_)) => true,
                    ("NoneType", PyValue::None) => true,
                    ("bool", PyValue::Num(e)) => e.is_bool(),
                    ("int", PyValue::Num(e)) => !e.is_bool() && !e.is_float(),
                    ("float", PyValue::Num(e)) => e.is_float(),
                    ("complex", PyValue::Complex(..)) | ("number", PyValue::Num(_) | PyValue::Complex(..)) => true,
                    ("str", PyValue::Str(_)) | ("Device" | "torch.device", PyValue::Device(_)) => true,
                    ("list" | "List", PyValue::List(_)) => true,
                    ("tuple" | "Tuple", PyValue::Tuple(..)) => true,
                    ("dict" | "Dict", PyValue::Dict(_)) => true,
                    (name, PyValue::Object(o)) => *o.class == *name,
                    (name, PyValue::Tuple(_, Some(f))) => *f.class == *name,
                    _ => false,
                })
            }
        }
    }

    /// Python's binary operator of this name on two values.
    pub(crate) fn operator_call(&mut self, op: &str, a: PyValue, b: PyValue) -> Result<PyValue> {
        for value in [&a, &b] {
            if let PyValue::Poison(why) = value {
                return Err(Error::unsupported(why.to_string()));
            }
        }
        match op {
            "is_" | "is_not" => {
                if let (PyValue::Maybe(maybe), PyValue::None) | (PyValue::None, PyValue::Maybe(maybe)) = (&a, &b) {
                    let is_set = PyValue::Tensor(maybe.is_set.clone());
                    return if op == "is_not" { Ok(is_set) } else { self.unary_call("not_", is_set) };
                }
                let is = match (&a, &b) {
                    (PyValue::None, PyValue::None) => true,
                    (PyValue::None, _) | (_, PyValue::None) => false,
                    (PyValue::Tensor(x), PyValue::Tensor(y)) => Rc::ptr_eq(x, y),
                    (PyValue::Object(x), PyValue::Object(y)) => Rc::ptr_eq(x, y),
                    (PyValue::Num(x), PyValue::Num(y)) => x == y,
                    _ => false,
                };
                return Ok(PyValue::bool(is == (op == "is_")));
            }
            "in" | "not_in" => {
                let found = self.contains(&b, &a)?;
                return Ok(PyValue::Num(if op == "in" { found } else { numbers::not(&found) }));
            }
            _ => {}
        }
        if let (PyValue::Num(x), PyValue::Num(y)) = (&a, &b)
            && let Some(e) = self.number_operator(op, x, y)?
        {
            return Ok(PyValue::Num(e));
        }
        if matches!(a, PyValue::Tensor(_)) || matches!(b, PyValue::Tensor(_)) {
            return self.tensor_operator(op, a, b);
        }
        self.other_operator(op, a, b)
    }

    /// Python's unary operator of this name.
    pub(crate) fn unary_call(&mut self, op: &str, a: PyValue) -> Result<PyValue> {
        if op == "not_" {
            return Ok(match self.truth(a)? {
                super::branches::Truth::Known(b) => PyValue::bool(!b),
                super::branches::Truth::Number(e) => PyValue::Num(numbers::not(&e)),
                super::branches::Truth::Data(t) => {
                    let t = self.rec.to_bool(&t)?;
                    PyValue::Tensor(self.rec.tensor("aten.logical_not.default", vec![restride_ir::Arg::Value(t)])?)
                }
            });
        }
        match &a {
            PyValue::Num(e) => match numbers::unary(op, e)? {
                Some(e) => Ok(PyValue::Num(e)),
                None => Err(refused(format!("{op} of {}", a.kind()))),
            },
            PyValue::Tensor(_) => {
                let name = match op {
                    "neg" => "neg",
                    "pos" => return Ok(a),
                    "invert" => "bitwise_not",
                    other => other,
                };
                self.dispatch("aten", name, &[a], &[])
            }
            PyValue::Complex(re, im) if op == "neg" => Ok(PyValue::Complex(-re, -im)),
            _ => Err(refused(format!("{op} of {}", a.kind()))),
        }
    }

    /// A number that must be an expression.
    pub(crate) fn number(&mut self, value: &PyValue) -> Result<Expr> {
        match value {
            PyValue::Num(e) => Ok(e.clone()),
            PyValue::Tensor(t) => self.rec.item(t),
            other => Err(refused(format!("a number is needed, got {}", other.kind()))),
        }
    }
}
