//! What names and attributes stand for.

use super::expressions::refused;
use super::{Definition, Env, Evaluator};
use crate::syntax::ast::Ast;
use crate::value::{PyObject, PyValue};
use restride_ir::{Error, ErrorKind, Result};
use std::rc::Rc;
use std::sync::Arc;

impl Evaluator<'_, '_> {
    pub(super) fn name(&mut self, env: &Env, name: &Arc<str>) -> Result<PyValue> {
        if let Some(value) = env.vars.get(name) {
            return Ok(value.clone());
        }
        if let Some(function) = crate::library::beside(&env.source, name) {
            return Ok(PyValue::Function(function));
        }
        Ok(match &**name {
            "inf" => PyValue::float(f64::INFINITY),
            "nan" => PyValue::float(f64::NAN),
            "Ellipsis" => PyValue::Ellipsis,
            _ => PyValue::Path(name.clone()),
        })
    }

    pub(super) fn attribute_of(&mut self, env: &mut Env, whole: &Ast, base: &Ast, name: &Arc<str>) -> Result<PyValue> {
        if let Some(path) = whole.dotted() {
            let root = path.split('.').next().unwrap_or_default();
            if !env.vars.contains_key(root) {
                return self.path(&path);
            }
        }
        let base = self.expression(env, base)?;
        self.get_attribute(&base, name)
    }

    /// A name of the code's globals, of PyTorch or of Python.
    fn path(&mut self, path: &str) -> Result<PyValue> {
        if let Some(constant) = path.strip_prefix("CONSTANTS.c") {
            let i = constant.parse().ok();
            let found = i.and_then(|i| self.library.constant(i));
            let found =
                found.ok_or_else(|| Error::new(ErrorKind::File, format!("the archive has no constant {path}")))?;
            return self.constant_value(found, path);
        }
        if path.starts_with("__torch__") {
            return self.global(path);
        }
        if let Some(value) = super::functional::constant(path) {
            return Ok(value);
        }
        Ok(PyValue::Path(path.into()))
    }

    /// A class or function by its qualified name; members of enumerations after it.
    fn global(&mut self, path: &str) -> Result<PyValue> {
        if self.library.find(path)?.is_some() {
            return Ok(PyValue::Global(path.into()));
        }
        let Some((class, member)) = path.rsplit_once('.') else {
            return Err(Error::new(ErrorKind::File, format!("the code has no {path}")));
        };
        if let Some(Definition::Class(info)) = self.library.find(class)?
            && info.base.as_deref() == Some("Enum")
        {
            let value = info.fields.iter().find(|(n, _)| **n == *member).and_then(|(_, v)| v.clone());
            if let Some(value) = value {
                let mut env = Env::new(info.source.clone());
                return self.expression(&mut env, &value);
            }
        }
        // `__torch__.C.__new__`
        Ok(PyValue::Path(path.into()))
    }

    /// An attribute of a value.
    pub(crate) fn get_attribute(&mut self, base: &PyValue, name: &Arc<str>) -> Result<PyValue> {
        match base {
            PyValue::Object(object) => {
                if let Some(value) = object.attributes.borrow().get(name) {
                    if !matches!(value, PyValue::Object(_)) {
                        let key = (Rc::as_ptr(object) as usize, name.clone());
                        if !self.written.contains(&key) {
                            self.read.insert(key);
                        }
                    }
                    return Ok(value.clone());
                }
                if let Some(Definition::Class(info)) = self.library.find(&object.class)? {
                    if info.methods.contains_key(name) {
                        return Ok(PyValue::Method(object.clone(), name.clone()));
                    }
                    if let Some((_, Some(value))) = info.fields.iter().find(|(n, _)| n == name) {
                        let mut env = Env::new(info.source.clone());
                        return self.expression(&mut env, value);
                    }
                }
                let path = object.path.borrow().clone();
                if let Some(path) = path {
                    let full = if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
                    if let Some(value) = self.library.weight(&full) {
                        object.attributes.borrow_mut().insert(name.clone(), value.clone());
                        return Ok(value);
                    }
                    // `torch.export` calls the checks of its inputs so, and lists them in `print(gm)` alone.
                    if self.library.has_below(&full) || full == "_guards_fn" {
                        let module = self.new_object(&"unknown".into());
                        *module.path.borrow_mut() = Some(full.as_str().into());
                        return Ok(PyValue::Object(module));
                    }
                    if *object.class == *"GraphModule" {
                        let what = format!("the graph reads the attribute {full}, which is not given");
                        return Err(Error::new(ErrorKind::Inputs, what).help(
                            "give weights with --weights FILE; the code of a body is in the text of print_readable()",
                        ));
                    }
                    if object.class.starts_with("repr ") {
                        let what = format!("the weight {full} is not given");
                        return Err(Error::new(ErrorKind::Inputs, what).help("give weights with --weights FILE"));
                    }
                }
                Err(Error::new(ErrorKind::File, format!("the class {} has no attribute {name}", object.class)))
            }
            PyValue::Tuple(items, Some(fields)) => match fields.names.iter().position(|n| n == name) {
                Some(i) => Ok(items[i].clone()),
                None => Err(refused(format!("{} has no field {name}", fields.class))),
            },
            PyValue::Tensor(t) => match self.tensor_attribute(&t.clone(), name)? {
                Some(value) => Ok(value),
                None => Ok(PyValue::Bound(Box::new(base.clone()), name.clone())),
            },
            PyValue::Path(path) => self.path(&format!("{path}.{name}")),
            PyValue::Global(path) => self.global(&format!("{path}.{name}")),
            PyValue::Complex(re, im) => match &**name {
                "real" => Ok(PyValue::float(*re)),
                "imag" => Ok(PyValue::float(*im)),
                _ => Err(refused(format!("a complex has no attribute {name}"))),
            },
            PyValue::Device(d) => match &**name {
                "type" => Ok(PyValue::str(d.split(':').next().unwrap_or("cpu"))),
                "index" => Ok(PyValue::None),
                _ => Err(refused(format!("a device has no attribute {name}"))),
            },
            PyValue::Poison(why) => Err(Error::unsupported(why.to_string())),
            // Results such as `torch.return_types.max`.
            PyValue::Tuple(items, None) if matches!(&**name, "values" | "indices") => {
                let at = usize::from(&**name == "indices");
                items.get(at).cloned().ok_or_else(|| refused(format!("a tuple has no attribute {name}")))
            }
            other => Ok(PyValue::Bound(Box::new(other.clone()), name.clone())),
        }
    }

    /// Sets an attribute.
    pub(crate) fn set_attribute(&mut self, object: &Rc<PyObject>, name: &Arc<str>, value: PyValue) -> Result<()> {
        if let PyValue::Poison(why) = &value {
            return Err(Error::unsupported(why.to_string()));
        }
        self.note_attribute(object, name);
        // What a branch alone writes may be read before by the other.
        if self.rec.depth() == 0 {
            self.written.insert((Rc::as_ptr(object) as usize, name.clone()));
        }
        object.attributes.borrow_mut().insert(name.clone(), value);
        Ok(())
    }

    /// Whether the class of an object has a method.
    pub(crate) fn has_method(&self, object: &Rc<PyObject>, name: &str) -> Result<bool> {
        Ok(match self.library.find(&object.class)? {
            Some(Definition::Class(info)) => info.methods.contains_key(name),
            _ => false,
        })
    }
}
