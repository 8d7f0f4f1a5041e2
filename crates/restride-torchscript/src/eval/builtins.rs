//! Functions by their paths: `torch.add`, `ops.prim.NumToTensor`, `torch.ops.aten.add.Tensor`, `math.sqrt`, `int`.

use super::expressions::refused;
use super::{Evaluator, numbers};
use crate::value::{PyKey, PyValue};
use indexmap::IndexMap;
use restride_ir::{Arg, DType, Error, ErrorKind, Expr, Result};
use std::rc::Rc;
use std::sync::Arc;

type OwnedKeywords = Vec<(Arc<str>, PyValue)>;

impl Evaluator<'_, '_> {
    /// Calls a function by its path.
    pub(crate) fn call_path(&mut self, path: &str, args: Vec<PyValue>, kwargs: OwnedKeywords) -> Result<PyValue> {
        // Some operators' results are asked for by name (`aten::add`).
        if let Some(rest) = path.strip_prefix("torch.ops.") {
            return self.call_operator(rest, args, kwargs);
        }
        if let Some(rest) = path.strip_prefix("ops.prim.") {
            return self.call_prim(rest, args, kwargs);
        }
        if let Some(rest) = path.strip_prefix("ops.aten.") {
            return self.call_torch(rest, args, kwargs);
        }
        if let Some(rest) = path.strip_prefix("ops.") {
            let (namespace, name) = rest.split_once('.').unwrap_or(("aten", rest));
            return self.dispatch(namespace, name, &args, &kwargs);
        }
        if path.starts_with("__torch__") {
            return match path.rsplit_once('.') {
                Some((class, "__new__")) => Ok(PyValue::Object(self.new_object(&class.into()))),
                _ => Err(Error::new(ErrorKind::File, format!("the code has no {path}"))),
            };
        }
        if let Some(value) = self.call_python(path, &args, &kwargs)? {
            return Ok(value);
        }
        match path.strip_prefix("torch.") {
            Some(rest) if !rest.contains('.') => self.call_torch(rest, args, kwargs),
            _ => match self.call_functional(path, &args, &kwargs)? {
                Some(value) => Ok(value),
                None => Err(Error::unsupported(format!("the function {path} is not known"))),
            },
        }
    }

    /// `aten.add.Tensor`, `aten.add` or `higher_order.cond`.
    fn call_operator(&mut self, path: &str, args: Vec<PyValue>, kwargs: OwnedKeywords) -> Result<PyValue> {
        let parts: Vec<&str> = path.split('.').collect();
        match parts[..] {
            ["higher_order", name] => self.higher_order(name, &args, &kwargs),
            [namespace, name] => self.dispatch(namespace, name, &args, &kwargs),
            ["aten", name, "default"]
                if matches!(name, "sym_size" | "sym_numel" | "sym_stride" | "sym_storage_offset") =>
            {
                self.call_torch(name.trim_start_matches("sym_"), args, kwargs)
            }
            ["aten", name @ ("sym_size" | "sym_stride"), "int"] => {
                self.call_torch(name.trim_start_matches("sym_"), args, kwargs)
            }
            ["aten", "_assert_scalar", "default"] => {
                let message = match args.get(1) {
                    Some(PyValue::Str(s)) => s.clone(),
                    _ => "".into(),
                };
                let condition = args.first().cloned().unwrap_or(PyValue::None);
                if self.require(condition, &message)? { Ok(PyValue::None) } else { Err(refused(message.to_string())) }
            }
            ["aten", "sym_constrain_range_for_size" | "sym_constrain_range" | "_assert_tensor_metadata", _] => {
                Ok(PyValue::None)
            }
            _ => {
                let full = path.strip_suffix(".default").filter(|p| !p.contains('.')).unwrap_or(path);
                let op = self.rec.operator(full)?;
                self.dispatch_exact(op, &args, &kwargs)
            }
        }
    }

    /// Python's own functions, and those of `math` and `operator`.
    fn call_python(&mut self, path: &str, args: &[PyValue], kwargs: &OwnedKeywords) -> Result<Option<PyValue>> {
        let arg = |i: usize| args.get(i).cloned().ok_or_else(|| refused(format!("{path} lacks an argument")));
        if let Some(op) = path.strip_prefix("operator.").or_else(|| path.strip_prefix("_operator.")) {
            return Ok(Some(match (op, args.len()) {
                ("getitem", _) => self.get_item(arg(0)?, arg(1)?)?,
                ("setitem", _) => {
                    self.set_item(arg(0)?, arg(1)?, arg(2)?)?;
                    PyValue::None
                }
                ("contains", _) => PyValue::Num(self.contains(&arg(0)?, &arg(1)?)?),
                (_, 1) => self.unary_call(op, arg(0)?)?,
                _ => self.operator_call(op, arg(0)?, arg(1)?)?,
            }));
        }
        if let Some(f) = path.strip_prefix("math.").or_else(|| path.strip_prefix("torch.sym_")) {
            let f = match f {
                "int" | "float" => {
                    let n = self.number(&arg(0)?)?;
                    return Ok(Some(PyValue::Num(if f == "int" {
                        numbers::to_int(&n)?
                    } else {
                        numbers::to_float(&n)
                    })));
                }
                "not" => "not_",
                other => other,
            };
            let a = self.number(&arg(0)?)?;
            let made = match args.len() {
                1 => self.number_function(f, &a)?,
                _ => {
                    let b = self.number(&arg(1)?)?;
                    self.number_operator(f, &a, &b)?
                }
            };
            return match made {
                Some(e) => Ok(Some(PyValue::Num(e))),
                None => Err(Error::unsupported(format!("{path} of a number that only a run knows"))),
            };
        }
        Ok(Some(match path {
            "int" | "torch.Int" => match arg(0)? {
                PyValue::Str(s) => {
                    PyValue::int(s.trim().parse().map_err(|_| refused(format!("invalid literal for int(): '{s}'")))?)
                }
                v => PyValue::Num(numbers::to_int(&self.number(&v)?)?),
            },
            "float" | "torch.Float" => match arg(0)? {
                PyValue::Str(s) => PyValue::float(match s.trim() {
                    "inf" | "infinity" => f64::INFINITY,
                    "-inf" => f64::NEG_INFINITY,
                    "nan" => f64::NAN,
                    s => s.parse().map_err(|_| refused(format!("could not convert string to float: '{s}'")))?,
                }),
                v => PyValue::Num(numbers::to_float(&self.number(&v)?)),
            },
            "bool" | "torch.Bool" => match self.truth(arg(0)?)? {
                super::branches::Truth::Known(b) => PyValue::bool(b),
                super::branches::Truth::Number(e) => PyValue::Num(e),
                // A condition stays a tensor, which a branch reads.
                super::branches::Truth::Data(t) => PyValue::Tensor(self.rec.to_bool(&t)?),
            },
            "complex" => {
                let part = |v: Option<&PyValue>| match v {
                    Some(PyValue::Num(e)) => e.constant().map(|c| c.as_f64()),
                    None => Some(0.0),
                    _ => None,
                };
                match (part(args.first()), part(args.get(1))) {
                    (Some(re), Some(im)) => PyValue::Complex(re, im),
                    _ => return Err(Error::unsupported("a complex number from data")),
                }
            }
            "str" => self.text_value(&arg(0)?)?,
            "len" => self.length(&arg(0)?)?,
            "range" => {
                let n = args.iter().map(|v| self.known_int(v, "a bound of a range")).collect::<Result<Vec<_>>>()?;
                let (start, end, step) = match n[..] {
                    [end] => (0, end, 1),
                    [start, end] => (start, end, 1),
                    [start, end, step] if step != 0 => (start, end, step),
                    _ => return Err(refused("range() takes one to three integers, and a step that is not 0")),
                };
                let mut out = Vec::new();
                let mut i = start;
                while if step > 0 { i < end } else { i > end } {
                    self.step(1)?;
                    out.push(PyValue::int(i));
                    i = i.saturating_add(step);
                }
                PyValue::list(out)
            }
            "list" => match args.first() {
                Some(v) => PyValue::list(self.unpacked(v)?),
                None => PyValue::list(Vec::new()),
            },
            "tuple" => match args.first() {
                Some(v) => PyValue::tuple(self.unpacked(v)?),
                None => PyValue::tuple(Vec::new()),
            },
            "dict" => {
                let mut out = IndexMap::new();
                if let Some(v) = args.first() {
                    match v {
                        PyValue::Dict(d) => out.extend(d.borrow().clone()),
                        v => {
                            for pair in self.unpacked(v)? {
                                let pair = self.unpacked(&pair)?;
                                let (Some(k), Some(v)) = (pair.first().and_then(PyKey::of), pair.get(1)) else {
                                    return Err(refused("dict() needs pairs"));
                                };
                                out.insert(k, v.clone());
                            }
                        }
                    }
                }
                for (k, v) in kwargs {
                    out.insert(PyKey::Str(k.clone()), v.clone());
                }
                PyValue::Dict(Rc::new(crate::value::Shared::new(out)))
            }
            "enumerate" => {
                let items = self.unpacked(&arg(0)?)?;
                PyValue::list(
                    items
                        .into_iter()
                        .enumerate()
                        .map(|(i, v)| PyValue::tuple(vec![PyValue::int(i as i64), v]))
                        .collect(),
                )
            }
            "zip" => {
                let lists = args.iter().map(|v| self.unpacked(v)).collect::<Result<Vec<_>>>()?;
                let n = lists.iter().map(Vec::len).min().unwrap_or(0);
                PyValue::list((0..n).map(|i| PyValue::tuple(lists.iter().map(|l| l[i].clone()).collect())).collect())
            }
            "sorted" => match arg(0)? {
                PyValue::List(l) => self.list_method(&l, path, &args[1..])?.unwrap_or(PyValue::None),
                other => return Err(refused(format!("sorted of {}", other.kind()))),
            },
            "reversed" => {
                let mut items = self.unpacked(&arg(0)?)?;
                items.reverse();
                PyValue::list(items)
            }
            "abs" => self.unary_call("abs", arg(0)?)?,
            "round" => match arg(0)? {
                PyValue::Num(e) => match numbers::unary("round", &e)? {
                    Some(r) => PyValue::Num(numbers::to_int(&r)?),
                    None => return Err(Error::unsupported("round of a number that only a run knows")),
                },
                v => self.dispatch("aten", "round", &[v], kwargs)?,
            },
            "min" | "max" => self.extreme(path, args)?,
            "sum" => {
                let mut total = PyValue::int(0);
                for item in self.unpacked(&arg(0)?)? {
                    total = self.operator_call("add", total, item)?;
                }
                total
            }
            "slice" => {
                let none = || PyValue::None;
                let get = |i: usize| args.get(i).cloned().unwrap_or(PyValue::None);
                match args.len() {
                    1 => PyValue::Slice(Box::new([none(), get(0), none()])),
                    _ => PyValue::Slice(Box::new([get(0), get(1), get(2)])),
                }
            }
            "getattr" => {
                let PyValue::Str(name) = arg(1)? else { return Err(refused("getattr of a computed name")) };
                self.get_attribute(&arg(0)?, &name)?
            }
            "torch.device" | "device" => {
                match kwargs.iter().find(|k| &*k.0 == "type").map_or_else(|| arg(0), |k| Ok(k.1.clone()))? {
                    PyValue::Str(s) => {
                        self.note_device(&s);
                        PyValue::Device("cpu".into())
                    }
                    v => v,
                }
            }
            "torch.Size" => PyValue::tuple(self.unpacked(&arg(0)?)?),
            "torch.finfo" | "torch.iinfo" => return Ok(None),
            _ => return Ok(None),
        }))
    }

    /// Notes a device other than the CPU.
    pub(crate) fn note_device(&mut self, device: &str) {
        if !device.starts_with("cpu") {
            let kind = device.split(':').next().unwrap_or(device);
            let note = format!("device {kind} is mapped to the CPU");
            if !self.rec.program.notes.contains(&note) {
                self.rec.program.notes.push(note);
            }
        }
    }

    fn length(&mut self, v: &PyValue) -> Result<PyValue> {
        Ok(match v {
            PyValue::Tensor(t) => match t.ty().layout.sizes.first() {
                Some(n) => PyValue::Num(n.clone()),
                None => return Err(refused("len() of a 0-d tensor")),
            },
            PyValue::Dict(d) => PyValue::int(d.borrow().len() as i64),
            PyValue::Str(s) => PyValue::int(s.chars().count() as i64),
            PyValue::Object(o) if self.has_method(o, "__len__")? => {
                return self.call_method(&o.clone(), "__len__", Vec::new(), Vec::new());
            }
            other => match other.items() {
                Some(items) => PyValue::Num(super::growth::length(&items)),
                None => PyValue::int(self.unpacked(other)?.len() as i64),
            },
        })
    }

    /// `min` or `max` of numbers: of two, or of a list.
    fn extreme(&mut self, name: &str, args: &[PyValue]) -> Result<PyValue> {
        let items = match args {
            [one] => self.unpacked(one)?,
            many => many.to_vec(),
        };
        let mut items = items.into_iter();
        let mut best = items.next().ok_or_else(|| refused(format!("{name}() of nothing")))?;
        for item in items {
            best = match (&best, &item) {
                (PyValue::Num(a), PyValue::Num(b)) => match numbers::binary(name, a, b)? {
                    Some(e) => PyValue::Num(e),
                    None => return Err(refused(format!("{name} of these numbers"))),
                },
                _ => {
                    let op = if name == "min" { "minimum" } else { "maximum" };
                    self.dispatch("aten", op, &[best, item], &[])?
                }
            };
        }
        Ok(best)
    }

    /// `torch.NAME(...)`: a function on numbers, lists, strings or tensors.
    pub(crate) fn call_torch(&mut self, name: &str, args: Vec<PyValue>, kwargs: OwnedKeywords) -> Result<PyValue> {
        if let Some(value) = self.call_meta(name, &args, &kwargs)? {
            return Ok(value);
        }
        if let Some(joined) = self.joined_rows(name, &args, &kwargs)? {
            return Ok(joined);
        }
        if let ("__not__", [flag @ PyValue::Tensor(_)]) = (name, &args[..]) {
            return self.unary_call("not_", flag.clone());
        }
        let tensors = args.iter().chain(kwargs.iter().map(|k| &k.1)).any(PyValue::has_tensor);
        if !tensors || matches!(name, "__is__" | "__isnot__") {
            if let Some(value) = self.call_values(name, &args)? {
                return Ok(value);
            }
        } else if let Some(first) = args.first() {
            // Functions of lists and dictionaries that hold tensors.
            match first {
                PyValue::List(l) if !matches!(name, "index" | "sort" | "slice" | "pop" if first.tensor().is_some()) => {
                    if let Some(value) = self.list_function(&l.clone(), name, &args)? {
                        return Ok(value);
                    }
                }
                PyValue::Dict(d) => {
                    if let Some(value) = self.dict_method(&d.clone(), name, &args[1..])? {
                        return Ok(value);
                    }
                }
                PyValue::Tuple(..) if matches!(name, "len" | "slice" | "__contains__") => {
                    if let Some(value) = self.call_values(name, &args)? {
                        return Ok(value);
                    }
                }
                _ => {}
            }
            if let (PyValue::Num(_), "__contains__" | "eq" | "ne") = (first, name)
                && args.iter().skip(1).all(|a| !matches!(a, PyValue::Tensor(_)))
                && let Some(value) = self.call_values(name, &args)?
            {
                return Ok(value);
            }
        }
        // `torch.nn.functional.interpolate` and its like were built in before PyTorch 1.5.
        if let Some(of) = name.strip_prefix("__").filter(|n| *n == "interpolate" || n.starts_with("upsample")) {
            let function = match of {
                "upsample_bilinear" | "upsample_nearest" => {
                    let function = crate::library::find(crate::library::Part::Functional, of);
                    function.ok_or_else(|| Error::invalid(format!("the library has no {of}")))?
                }
                // Both take what `interpolate` takes.
                _ => {
                    let made = self.call_functional("torch.nn.functional.interpolate", &args, &kwargs)?;
                    return made.ok_or_else(|| Error::invalid("interpolate is not known"));
                }
            };
            return self.call_library(&function, args, kwargs);
        }
        if let Some(value) = self.fast_path(name, &args, &kwargs)? {
            return Ok(value);
        }
        if let Some(value) = self.upgraded(name, &args, &kwargs)? {
            return Ok(value);
        }
        if let Some(value) = self.call_functional(&format!("torch.{name}"), &args, &kwargs)? {
            return Ok(value);
        }
        self.dispatch("aten", name, &args, &kwargs)
    }

    fn list_function(&mut self, list: &crate::value::ListRef, name: &str, args: &[PyValue]) -> Result<Option<PyValue>> {
        let of_list = matches!(
            name,
            "append"
                | "extend"
                | "insert"
                | "pop"
                | "clear"
                | "reverse"
                | "remove"
                | "copy"
                | "list"
                | "len"
                | "__getitem__"
                | "_set_item"
                | "__contains__"
                | "slice"
                | "Delete"
                | "sorted"
                | "index"
                | "count"
                | "sort"
        );
        if of_list {
            return self.list_method(list, name, &args[1..]);
        }
        match (name, args) {
            ("dict", _) => self.call_path("dict", args.to_vec(), Vec::new()).map(Some),
            ("all" | "any", [_]) => self.call_values(name, args),
            ("add" | "add_" | "mul" | "mul_", [a, b]) if matches!(b, PyValue::List(_) | PyValue::Num(_)) => {
                self.other_operator(name, a.clone(), b.clone()).map(Some)
            }
            ("eq" | "ne", [a, b]) if matches!(b, PyValue::List(_)) => {
                self.other_operator(name, a.clone(), b.clone()).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// A function of one number, in double precision also where data decide the number; `None` for another name.
    fn number_function(&mut self, name: &str, e: &Expr) -> Result<Option<Expr>> {
        let by_tensor = numbers::BY_TENSORS.iter().find(|f| f.name == name);
        let Some(function) = by_tensor.filter(|f| e.is_learnt() && (e.is_float() || f.of_integers)) else {
            return numbers::unary(name, e);
        };
        let x = self.rec.scalar_tensor(e, DType::F64)?;
        let y = self.rec.tensor(function.operator, vec![Arg::Value(x)])?;
        let made = self.rec.item(&y)?;
        Ok(Some(if function.whole { numbers::to_int(&made)? } else { made }))
    }

    /// A function of two numbers, as [`Self::number_function`].
    pub(crate) fn number_operator(&mut self, name: &str, a: &Expr, b: &Expr) -> Result<Option<Expr>> {
        let by_tensors = numbers::OF_TWO_BY_TENSORS.iter().find(|f| f.names.contains(&name));
        let floats = a.is_float() || b.is_float();
        let learnt = a.is_learnt() || b.is_learnt();
        let Some(function) = by_tensors.filter(|f| learnt && (floats || f.of_integers)) else {
            return numbers::binary(name, a, b);
        };
        let x = self.rec.scalar_tensor(a, DType::F64)?;
        let y = self.rec.scalar_tensor(b, DType::F64)?;
        let mut made = self.rec.tensor(function.operator, vec![Arg::Value(x), Arg::Value(y)])?;
        if let Some(last) = function.last {
            made = self.rec.tensor(last, vec![Arg::Value(made)])?;
        }
        self.rec.item(&made).map(Some)
    }

    /// Functions of values without tensors, by TorchScript's names.
    fn call_values(&mut self, name: &str, args: &[PyValue]) -> Result<Option<PyValue>> {
        let renamed = match name {
            "__is__" => "is_",
            "__isnot__" => "is_not",
            other => other,
        };
        if let ("is_" | "is_not", [a, b]) = (renamed, args) {
            return self.operator_call(renamed, a.clone(), b.clone()).map(Some);
        }
        match args {
            [PyValue::Num(e)] => {
                if matches!(name, "ord" | "chr" | "hex" | "bin" | "oct") {
                    let n = self.known_int(&args[0], "a number")?;
                    return Ok(Some(PyValue::str(&match name {
                        "chr" => char::from_u32(n as u32).unwrap_or('?').to_string(),
                        "hex" => format!("{n:#x}"),
                        "bin" => format!("{n:#b}"),
                        _ => format!("{n:#o}"),
                    })));
                }
                if let Some(made) = self.number_function(name, e)? {
                    return Ok(Some(PyValue::Num(made)));
                }
            }
            [PyValue::Num(a), PyValue::Num(b), ..] => {
                if let Some(made) = self.number_operator(name, a, b)? {
                    return Ok(Some(PyValue::Num(made)));
                }
            }
            [PyValue::List(l), rest @ ..] => {
                if let Some(made) = self.list_method(&l.clone(), name, rest)? {
                    return Ok(Some(made));
                }
            }
            [PyValue::Dict(d), rest @ ..] => {
                if let Some(made) = self.dict_method(&d.clone(), name, rest)? {
                    return Ok(Some(made));
                }
            }
            [PyValue::Str(s), rest @ ..] => match name {
                "ord" => return Ok(Some(PyValue::int(s.chars().next().map_or(0, |c| i64::from(u32::from(c)))))),
                "slice" => {
                    let bounds = [0, 1, 2].map(|i| rest.get(i).cloned().unwrap_or(PyValue::None));
                    return self.get_item(args[0].clone(), PyValue::Slice(Box::new(bounds))).map(Some);
                }
                "list" => return Ok(Some(PyValue::list(self.unpacked(&args[0])?))),
                "percentFormat" => {
                    let given = match rest {
                        [tuple @ PyValue::Tuple(..)] => tuple.clone(),
                        _ => PyValue::tuple(rest.to_vec()),
                    };
                    return self.other_operator("mod", args[0].clone(), given).map(Some);
                }
                "len" | "__getitem__" | "__contains__" => {}
                _ => {
                    if let Some(made) = self.string_method(&s.clone(), name, rest)? {
                        return Ok(Some(made));
                    }
                }
            },
            _ => {}
        }
        Ok(match (name, args) {
            ("len", [v]) => Some(self.length(v)?),
            ("__getitem__", [a, b]) => Some(self.get_item(a.clone(), b.clone())?),
            ("__contains__", [a, b]) => Some(PyValue::Num(self.contains(a, b)?)),
            ("slice", [v @ PyValue::Tuple(..), rest @ ..]) => {
                let bounds = [0, 1, 2].map(|i| rest.get(i).cloned().unwrap_or(PyValue::None));
                Some(self.get_item(v.clone(), PyValue::Slice(Box::new(bounds)))?)
            }
            ("min" | "max", [PyValue::List(_)]) => Some(self.extreme(name, args)?),
            ("sum", [v @ PyValue::List(_)]) => {
                let mut total = PyValue::int(0);
                for item in self.unpacked(v)? {
                    total = self.operator_call("add", total, item)?;
                }
                Some(total)
            }
            ("all" | "any", [PyValue::List(l)]) => {
                let items = l.borrow().clone();
                let mut out = Expr::Bool(name == "all");
                for item in items {
                    let e = numbers::truth(&self.number(&item)?);
                    out = if name == "all" { numbers::and(&out, &e) } else { numbers::or(&out, &e) };
                }
                Some(PyValue::Num(out))
            }
            ("add" | "add_" | "sub" | "mul" | "mul_" | "div" | "eq" | "ne" | "lt" | "le" | "gt" | "ge", [a, b])
                if !matches!((a, b), (PyValue::Num(_), PyValue::Num(_))) =>
            {
                Some(self.other_operator(name, a.clone(), b.clone())?)
            }
            ("__not__", [v]) => Some(self.unary_call("not_", v.clone())?),
            ("divmod", [a, b]) => {
                let (a, b) = (self.number(a)?, self.number(b)?);
                let parts = [self.number_operator("floordiv", &a, &b)?, self.number_operator("mod", &a, &b)?];
                Some(PyValue::tuple(parts.into_iter().flatten().map(PyValue::Num).collect()))
            }
            ("dict", _) => Some(self.call_path("dict", args.to_vec(), Vec::new())?),
            _ => None,
        })
    }

    /// A value by PyTorch's operator of two tensors or numbers.
    pub(crate) fn tensor_operator(&mut self, op: &str, a: PyValue, b: PyValue) -> Result<PyValue> {
        let (name, in_place) = match op {
            "add" | "sub" | "mul" | "matmul" | "pow" | "eq" | "ne" | "lt" | "le" | "gt" | "ge" => (op, false),
            "truediv" | "div" => ("div", false),
            "floordiv" => ("floor_divide", false),
            "mod" | "remainder" => ("remainder", false),
            "and_" | "__and__" => ("bitwise_and", false),
            "or_" | "__or__" => ("bitwise_or", false),
            "xor" | "__xor__" => ("bitwise_xor", false),
            "lshift" => ("bitwise_left_shift", false),
            "rshift" => ("bitwise_right_shift", false),
            "iadd" => ("add_", true),
            "isub" => ("sub_", true),
            "imul" => ("mul_", true),
            "itruediv" => ("div_", true),
            "ifloordiv" => ("floor_divide_", true),
            "imod" => ("remainder_", true),
            "ipow" => ("pow_", true),
            "iand" => ("bitwise_and_", true),
            "ior" => ("bitwise_or_", true),
            "ixor" => ("bitwise_xor_", true),
            "imatmul" => ("matmul", false),
            other => return Err(refused(format!("{other} of a tensor"))),
        };
        // `number - tensor` and its like.
        if let (PyValue::Num(_), PyValue::Tensor(t)) = (&a, &b) {
            let t = t.clone();
            return match name {
                "add" | "mul" | "eq" | "ne" | "bitwise_and" | "bitwise_or" | "bitwise_xor" => {
                    self.dispatch("aten", name, &[b, a], &[])
                }
                "lt" => self.dispatch("aten", "gt", &[b, a], &[]),
                "le" => self.dispatch("aten", "ge", &[b, a], &[]),
                "gt" => self.dispatch("aten", "lt", &[b, a], &[]),
                "ge" => self.dispatch("aten", "le", &[b, a], &[]),
                "sub" => self.dispatch("aten", "rsub", &[b, a], &[]),
                "div" => {
                    let inverse = self.rec.tensor("aten.reciprocal.default", vec![Arg::Value(t)])?;
                    self.dispatch("aten", "mul", &[PyValue::Tensor(inverse), a], &[])
                }
                _ => self.dispatch("aten", name, &[a, b], &[]),
            };
        }
        if in_place && !matches!(a, PyValue::Tensor(_)) {
            return self.tensor_operator(op.trim_start_matches('i'), a, b);
        }
        self.dispatch("aten", name, &[a, b], &[])
    }
}
