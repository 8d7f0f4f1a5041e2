//! Lists and dictionaries, by TorchScript's function names (`torch.append(list, item)`).

use super::expressions::refused;
use super::growth::{fixed_length, length};
use super::indexing::position;
use super::{Evaluator, MAX_ITEMS, numbers};
use crate::value::{DictRef, ListRef, PyKey, PyValue};
use restride_ir::{Arg, DType, Error, ErrorKind, Expr, Result, sort_indices};
use std::rc::Rc;

impl Evaluator<'_, '_> {
    fn room(&mut self, n: usize) -> Result<()> {
        self.step(n as u64 / 64)?;
        if n > MAX_ITEMS {
            return Err(Error::new(ErrorKind::Limit, format!("a list of more than {MAX_ITEMS} items")));
        }
        Ok(())
    }

    /// A function or method of a list; `None` if there is none.
    pub(crate) fn list_method(&mut self, list: &ListRef, name: &str, args: &[PyValue]) -> Result<Option<PyValue>> {
        let arg = |i: usize| args.get(i).cloned().ok_or_else(|| refused(format!("{name} lacks an argument")));
        let n = list.borrow().len();
        if !matches!(name, "append" | "copy" | "list" | "len") {
            fixed_length(&PyValue::List(list.clone()))?;
        }
        Ok(Some(match name {
            "append" => {
                let item = arg(0)?;
                self.room(n + 1)?;
                self.note_list(list);
                list.borrow_mut().push(item);
                PyValue::List(list.clone())
            }
            "extend" => {
                let more = self.unpacked(&arg(0)?)?;
                self.room(n + more.len())?;
                self.note_list(list);
                list.borrow_mut().extend(more);
                PyValue::None
            }
            "insert" => {
                let at = self.known_int(&arg(0)?, "a position")?;
                let at = if at < 0 { (at + n as i64).max(0) } else { at.min(n as i64) };
                self.room(n + 1)?;
                self.note_list(list);
                list.borrow_mut().insert(at as usize, arg(1)?);
                PyValue::None
            }
            "pop" => {
                let at = match args.first() {
                    Some(v) => self.known_int(v, "a position")?,
                    None => -1,
                };
                let at = position(at, n)?;
                self.note_list(list);
                list.borrow_mut().remove(at)
            }
            "Delete" | "__delitem__" => {
                let at = self.known_int(&arg(0)?, "a position")?;
                let at = position(at, n)?;
                self.note_list(list);
                list.borrow_mut().remove(at);
                PyValue::None
            }
            "clear" => {
                self.note_list(list);
                list.borrow_mut().clear();
                PyValue::None
            }
            "reverse" => {
                self.note_list(list);
                list.borrow_mut().reverse();
                PyValue::None
            }
            "remove" => {
                let items = list.borrow().clone();
                for (i, item) in items.iter().enumerate() {
                    let same = self.equal(item, &arg(0)?)?;
                    if self.decide(&same)? == Some(true) {
                        self.note_list(list);
                        list.borrow_mut().remove(i);
                        return Ok(Some(PyValue::None));
                    }
                }
                return Err(refused("list.remove(x): x not in list"));
            }
            "index" | "count" => {
                let (items, wanted) = (list.borrow().clone(), arg(0)?);
                let mut count = 0;
                for (i, item) in items.iter().enumerate() {
                    let same = self.equal(item, &wanted)?;
                    match self.decide(&same)? {
                        Some(true) if name == "index" => return Ok(Some(PyValue::int(i as i64))),
                        Some(true) => count += 1,
                        Some(false) => {}
                        None => return Err(Error::unsupported("a search in a list of numbers from data")),
                    }
                }
                if name == "index" {
                    return Err(refused("the value is not in the list"));
                }
                PyValue::int(count)
            }
            "copy" | "list" => PyValue::list(list.borrow().clone()),
            "sort" | "sorted" => {
                let reverse = matches!(args.first(), Some(PyValue::Num(Expr::Bool(true))));
                let mut items = list.borrow().clone();
                let from_data = |v: &PyValue| matches!(v, PyValue::Num(e) if e.is_learnt());
                match items.iter().any(from_data) {
                    true => items = self.sorted_numbers(&items, reverse)?,
                    false => sort(&mut items, reverse)?,
                }
                if name == "sorted" {
                    return Ok(Some(PyValue::list(items)));
                }
                self.note_list(list);
                *list.borrow_mut() = items;
                PyValue::None
            }
            "len" => PyValue::Num(length(&list.borrow())),
            "__getitem__" => self.get_item(PyValue::List(list.clone()), arg(0)?)?,
            "_set_item" | "__setitem__" => {
                self.set_item(PyValue::List(list.clone()), arg(0)?, arg(1)?)?;
                PyValue::List(list.clone())
            }
            "__contains__" => PyValue::Num(self.contains(&PyValue::List(list.clone()), &arg(0)?)?),
            "slice" => {
                let bounds = [0, 1, 2].map(|i| args.get(i).cloned().unwrap_or(PyValue::None));
                let items = list.borrow().clone();
                PyValue::list(self.sliced(items, &bounds)?)
            }
            _ => return Ok(None),
        }))
    }

    /// Sorts numbers as a tensor, because data decides some of them.
    fn sorted_numbers(&mut self, items: &[PyValue], reverse: bool) -> Result<Vec<PyValue>> {
        let numbers = items.iter().map(|v| self.number(v)).collect::<Result<Vec<_>>>()?;
        let dtype = if numbers.iter().any(Expr::is_float) { DType::F64 } else { DType::I64 };
        let mut parts = Vec::new();
        for e in &numbers {
            parts.push(Some(self.rec.scalar_tensor(e, dtype)?));
        }
        let all = self.rec.tensor("aten.stack.default", vec![Arg::Values(parts)])?;
        let order = [Expr::Int(-1), Expr::Bool(reverse)].map(Arg::Scalar);
        let sorted = self.rec.tensor("aten.sort.default", std::iter::once(Arg::Value(all)).chain(order).collect())?;
        let mut out = Vec::new();
        for i in 0..numbers.len() as i64 {
            let place = [Expr::Int(0), Expr::Int(i)].map(Arg::Scalar);
            let args = std::iter::once(Arg::Value(sorted.clone())).chain(place).collect();
            let one = self.rec.tensor("aten.select.int", args)?;
            out.push(PyValue::Num(self.rec.item(&one)?));
        }
        Ok(out)
    }

    /// A function or method of a dictionary; `None` if there is none.
    pub(crate) fn dict_method(&mut self, dict: &DictRef, name: &str, args: &[PyValue]) -> Result<Option<PyValue>> {
        let arg = |i: usize| args.get(i).cloned().ok_or_else(|| refused(format!("{name} lacks an argument")));
        Ok(Some(match name {
            "keys" => PyValue::list(dict.borrow().keys().map(PyKey::value).collect()),
            "values" => PyValue::list(dict.borrow().values().cloned().collect()),
            "items" => {
                PyValue::list(dict.borrow().iter().map(|(k, v)| PyValue::tuple(vec![k.value(), v.clone()])).collect())
            }
            "len" => PyValue::int(dict.borrow().len() as i64),
            "__getitem__" => self.get_item(PyValue::Dict(dict.clone()), arg(0)?)?,
            "_set_item" | "__setitem__" => {
                self.set_item(PyValue::Dict(dict.clone()), arg(0)?, arg(1)?)?;
                PyValue::None
            }
            "__contains__" => PyValue::Num(self.contains(&PyValue::Dict(dict.clone()), &arg(0)?)?),
            "get" => {
                let found = dict.borrow().get(&self.key(&arg(0)?)?).cloned();
                found.or_else(|| args.get(1).cloned()).unwrap_or(PyValue::None)
            }
            "setdefault" => {
                let at = self.key(&arg(0)?)?;
                if let Some(found) = dict.borrow().get(&at) {
                    return Ok(Some(found.clone()));
                }
                self.note_dict(dict);
                let default = args.get(1).cloned().unwrap_or(PyValue::None);
                dict.borrow_mut().insert(at, default.clone());
                default
            }
            "pop" => {
                let at = self.key(&arg(0)?)?;
                self.note_dict(dict);
                let found = dict.borrow_mut().shift_remove(&at);
                match found.or_else(|| args.get(1).cloned()) {
                    Some(v) => v,
                    None => return Err(refused("KeyError: pop of a missing key")),
                }
            }
            "Delete" | "__delitem__" => {
                let at = self.key(&arg(0)?)?;
                self.note_dict(dict);
                if dict.borrow_mut().shift_remove(&at).is_none() {
                    return Err(refused("KeyError"));
                }
                PyValue::None
            }
            "popitem" => {
                self.note_dict(dict);
                let popped = dict.borrow_mut().pop();
                match popped {
                    Some((k, v)) => PyValue::tuple(vec![k.value(), v]),
                    None => return Err(refused("popitem(): dictionary is empty")),
                }
            }
            "clear" => {
                self.note_dict(dict);
                dict.borrow_mut().clear();
                PyValue::None
            }
            "update" => {
                let PyValue::Dict(more) = arg(0)? else { return Err(refused("update needs a dictionary")) };
                let more = more.borrow().clone();
                self.note_dict(dict);
                dict.borrow_mut().extend(more);
                PyValue::None
            }
            "copy" => PyValue::Dict(Rc::new(crate::value::Shared::new(dict.borrow().clone()))),
            _ => return Ok(None),
        }))
    }

    /// Operators on values that are neither numbers nor tensors.
    pub(crate) fn other_operator(&mut self, op: &str, a: PyValue, b: PyValue) -> Result<PyValue> {
        match (op, &a, &b) {
            ("eq", ..) => return Ok(PyValue::Num(self.equal(&a, &b)?)),
            ("ne", ..) => return Ok(PyValue::Num(numbers::not(&self.equal(&a, &b)?))),
            ("add" | "iadd", PyValue::Str(x), PyValue::Str(y)) => {
                self.room(x.len() + y.len())?;
                return Ok(PyValue::str(&format!("{x}{y}")));
            }
            ("add" | "iadd" | "add_", PyValue::List(x), PyValue::List(y)) => {
                let mut all = x.borrow().clone();
                all.extend(y.borrow().iter().cloned());
                self.room(all.len())?;
                if op == "add" {
                    return Ok(PyValue::list(all));
                }
                self.note_list(x);
                *x.borrow_mut() = all;
                return Ok(a.clone());
            }
            ("add", PyValue::Tuple(x, _), PyValue::Tuple(y, _)) => {
                return Ok(PyValue::tuple(x.iter().chain(y.iter()).cloned().collect()));
            }
            ("mul" | "imul" | "mul_", PyValue::List(x), PyValue::Num(n))
            | ("mul", PyValue::Num(n), PyValue::List(x)) => {
                let n = self.known_int(&PyValue::Num(n.clone()), "a number of copies")?.max(0) as usize;
                let items = x.borrow().clone();
                self.room(items.len().saturating_mul(n))?;
                let all: Vec<PyValue> = items.iter().cloned().cycle().take(items.len() * n).collect();
                if op == "mul" {
                    return Ok(PyValue::list(all));
                }
                self.note_list(x);
                *x.borrow_mut() = all;
                return Ok(PyValue::List(x.clone()));
            }
            ("mul", PyValue::Str(s), PyValue::Num(n)) => {
                let n = self.known_int(&PyValue::Num(n.clone()), "a number of copies")?.max(0) as usize;
                self.room(s.len().saturating_mul(n))?;
                return Ok(PyValue::str(&s.repeat(n)));
            }
            ("mod", PyValue::Str(s), _) => {
                let args = match &b {
                    PyValue::Tuple(t, _) => t.to_vec(),
                    other => vec![other.clone()],
                };
                return self.percent_formatted(&s.clone(), &args);
            }
            ("lt" | "le" | "gt" | "ge", PyValue::Str(x), PyValue::Str(y)) => {
                return Ok(PyValue::bool(match op {
                    "lt" => x < y,
                    "le" => x <= y,
                    "gt" => x > y,
                    _ => x >= y,
                }));
            }
            ("add" | "sub" | "mul" | "div" | "truediv", ..) => {
                let complex = |v: &PyValue| match v {
                    PyValue::Complex(re, im) => Some((*re, *im)),
                    PyValue::Num(e) => Some((e.constant()?.as_f64(), 0.0)),
                    _ => None,
                };
                if let (Some((a, b)), Some((c, d))) = (complex(&a), complex(&b)) {
                    let n = c * c + d * d;
                    let (re, im) = match op {
                        "add" => (a + c, b + d),
                        "sub" => (a - c, b - d),
                        "mul" => (a * c - b * d, a * d + b * c),
                        _ => ((a * c + b * d) / n, (b * c - a * d) / n),
                    };
                    return Ok(PyValue::Complex(re, im));
                }
            }
            _ => {}
        }
        Err(refused(format!("{op} of {} and {}", a.kind(), b.kind())))
    }
}

/// Sorts known numbers or strings.
fn sort(items: &mut [PyValue], reverse: bool) -> Result<()> {
    let numbers: Option<Vec<f64>> =
        items.iter().map(|v| if let PyValue::Num(e) = v { e.constant().map(|c| c.as_f64()) } else { None }).collect();
    let strings: Option<Vec<String>> =
        items.iter().map(|v| if let PyValue::Str(s) = v { Some(s.to_string()) } else { None }).collect();
    let mut order: Vec<usize> = (0..items.len()).collect();
    match (numbers, strings) {
        (Some(n), _) => sort_indices(&mut order, &|a, b| n[a].total_cmp(&n[b])),
        (_, Some(s)) => sort_indices(&mut order, &|a, b| s[a].cmp(&s[b])),
        _ => return Err(Error::unsupported("a sort of a list of other values than known numbers or strings")),
    }
    if reverse {
        order.reverse();
    }
    let sorted: Vec<PyValue> = order.into_iter().map(|i| items[i].clone()).collect();
    items.clone_from_slice(&sorted);
    Ok(())
}
