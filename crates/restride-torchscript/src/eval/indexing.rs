//! `x[i]` on lists, tuples, dictionaries, strings and tensors.

use super::expressions::refused;
use super::growth::fixed_length;
use super::{Env, Evaluator, numbers};
use crate::record::TensorRef;
use crate::syntax::ast::{Ast, AstKind};
use crate::value::{PyKey, PyValue};
use restride_ir::{Arg, DType, Error, Expr, ExprFn, Result};

impl Evaluator<'_, '_> {
    /// An index: slices are values in it.
    pub(crate) fn index_value(&mut self, env: &mut Env, ast: &Ast) -> Result<PyValue> {
        match &ast.kind {
            AstKind::Slice(a, b, c) => {
                let mut part = |p: &Option<Box<Ast>>| match p {
                    Some(p) => self.expression(env, p),
                    None => Ok(PyValue::None),
                };
                let parts = [part(a)?, part(b)?, part(c)?];
                Ok(PyValue::Slice(Box::new(parts)))
            }
            AstKind::Tuple(items) => {
                let items = items.iter().map(|i| self.index_value(env, i)).collect::<Result<Vec<_>>>()?;
                Ok(PyValue::tuple(items))
            }
            _ => self.expression(env, ast),
        }
    }

    /// A value as a dictionary's key.
    pub(crate) fn key(&mut self, value: &PyValue) -> Result<PyKey> {
        match value {
            PyValue::Poison(why) => Err(Error::unsupported(why.to_string())),
            PyValue::Num(e) if e.constant().is_none() => Ok(PyKey::Int(self.known_int(value, "a dictionary's key")?)),
            other => PyKey::of(other).ok_or_else(|| refused(format!("{} as a dictionary's key", other.kind()))),
        }
    }

    /// `base[index]`
    pub(crate) fn get_item(&mut self, base: PyValue, index: PyValue) -> Result<PyValue> {
        if let (PyValue::List(items), PyValue::Num(_) | PyValue::Tensor(_)) = (&base, &index)
            && fixed_length(&base).is_err()
        {
            let items = items.borrow().clone();
            return self.item_of_rows(&items, &index);
        }
        fixed_length(&base)?;
        match (&base, &index) {
            (PyValue::List(_) | PyValue::Tuple(..), PyValue::Slice(s)) => {
                let items = base.items().unwrap_or_default();
                let taken = self.sliced(items, s)?;
                Ok(if let PyValue::List(_) = base { PyValue::list(taken) } else { PyValue::tuple(taken) })
            }
            (PyValue::List(_) | PyValue::Tuple(..), _) => {
                let items = base.items().unwrap_or_default();
                let at = self.known_int(&index, "an index")?;
                let at = position(at, items.len())?;
                Ok(items[at].clone())
            }
            (PyValue::Dict(d), _) => {
                let key = self.key(&index)?;
                if let Some(found) = d.borrow().get(&key) {
                    return Ok(found.clone());
                }
                let text = self.text(&index)?.unwrap_or_default();
                Err(refused(format!("KeyError: {text}")))
            }
            (PyValue::Str(s), PyValue::Slice(slice)) => {
                let chars = s.chars().map(|c| PyValue::str(&c.to_string())).collect();
                let taken = PyValue::list(self.sliced(chars, slice)?);
                Ok(self.string_method("", "join", &[taken])?.unwrap_or(PyValue::None))
            }
            (PyValue::Str(s), _) => {
                let chars: Vec<char> = s.chars().collect();
                let at = self.known_int(&index, "an index")?;
                let at = position(at, chars.len())?;
                Ok(PyValue::str(&chars[at].to_string()))
            }
            (PyValue::Tensor(t), _) => Ok(PyValue::Tensor(self.index_tensor(&t.clone(), &index)?)),
            // A container of modules.
            (PyValue::Object(o), PyValue::Str(name)) => self.get_attribute(&PyValue::Object(o.clone()), name),
            (PyValue::Object(_), _) => {
                let modules = self.unpacked(&base)?;
                let at = self.known_int(&index, "an index")?;
                Ok(modules[position(at, modules.len())?].clone())
            }
            (PyValue::Poison(why), _) => Err(Error::unsupported(why.to_string())),
            _ => Err(refused(format!("{} has no items", base.kind()))),
        }
    }

    /// Items of a list at a slice.
    pub(crate) fn sliced(&mut self, items: Vec<PyValue>, slice: &[PyValue; 3]) -> Result<Vec<PyValue>> {
        let n = items.len() as i64;
        let mut bound = |v: &PyValue, default: i64| match v {
            PyValue::None => Ok(default),
            v => self.known_int(v, "a bound of a slice"),
        };
        let step = bound(&slice[2], 1)?;
        if step == 0 {
            return Err(refused("slice step cannot be zero"));
        }
        let clamp = |i: i64, low: i64, high: i64| (if i < 0 { i.saturating_add(n) } else { i }).clamp(low, high);
        let mut out = Vec::new();
        if step > 0 {
            let start = clamp(bound(&slice[0], 0)?, 0, n);
            let end = clamp(bound(&slice[1], n)?, 0, n);
            let mut at = start;
            while at < end {
                out.push(items[at as usize].clone());
                at = at.saturating_add(step);
            }
        } else {
            let start = clamp(bound(&slice[0], n - 1)?, -1, n - 1);
            let end = match &slice[1] {
                PyValue::None => -1,
                v => clamp(bound(v, 0)?, -1, n - 1),
            };
            let mut at = start;
            while at > end {
                out.push(items[at as usize].clone());
                at = at.saturating_add(step);
            }
        }
        Ok(out)
    }

    /// `base[index] = value`
    pub(crate) fn set_item(&mut self, base: PyValue, index: PyValue, value: PyValue) -> Result<()> {
        fixed_length(&base)?;
        match &base {
            PyValue::List(l) => {
                let n = l.borrow().len();
                let at = self.known_int(&index, "an index")?;
                let at = position(at, n)?;
                self.note_list(l);
                l.borrow_mut()[at] = value;
                Ok(())
            }
            PyValue::Dict(d) => {
                let key = self.key(&index)?;
                self.note_dict(d);
                d.borrow_mut().insert(key, value);
                Ok(())
            }
            PyValue::Tensor(t) => self.set_tensor_item(&t.clone(), &index, value),
            _ => Err(refused(format!("an item of {} is assigned", base.kind()))),
        }
    }

    /// Python's indexing of a tensor: views for integers and slices, then one index operator for tensors.
    fn index_tensor(&mut self, t: &TensorRef, index: &PyValue) -> Result<TensorRef> {
        let (view, indices) = self.index_views(t, index)?;
        if indices.iter().all(Option::is_none) {
            return Ok(view);
        }
        self.rec.tensor("aten.index.Tensor", vec![Arg::Value(view), Arg::Values(indices)])
    }

    fn set_tensor_item(&mut self, t: &TensorRef, index: &PyValue, value: PyValue) -> Result<()> {
        let (view, indices) = self.index_views(t, index)?;
        let source = match &value {
            PyValue::Tensor(s) => s.clone(),
            PyValue::Num(e) if indices.iter().all(Option::is_none) => {
                let args = vec![Arg::Value(view), Arg::Scalar(e.clone())];
                self.rec.tensor("aten.fill_.Scalar", args)?;
                return Ok(());
            }
            PyValue::Num(e) => self.rec.scalar_tensor(e, t.dtype())?,
            other => return Err(refused(format!("{} is assigned into a tensor", other.kind()))),
        };
        if indices.iter().all(Option::is_none) {
            // Leading dimensions of size 1 are dropped, as Python's assignment does.
            let mut source = source;
            while source.rank() > view.rank() && matches!(source.ty().layout.sizes[0], Expr::Int(1)) {
                let args = vec![Arg::Value(source), Arg::Scalar(Expr::Int(0)), Arg::Scalar(Expr::Int(0))];
                source = self.rec.tensor("aten.select.int", args)?;
            }
            self.rec.tensor("aten.copy_.default", vec![Arg::Value(view), Arg::Value(source)])?;
            return Ok(());
        }
        let args = vec![Arg::Value(view), Arg::Values(indices), Arg::Value(source)];
        self.rec.tensor("aten.index_put_.default", args)?;
        Ok(())
    }

    fn index_views(&mut self, t: &TensorRef, index: &PyValue) -> Result<(TensorRef, Vec<Option<TensorRef>>)> {
        let items: Vec<PyValue> = match index {
            PyValue::Tuple(items, _) => items.to_vec(),
            other => vec![other.clone()],
        };
        let takes = |v: &PyValue| match v {
            PyValue::None | PyValue::Ellipsis => 0,
            PyValue::Tensor(t) if t.dtype() == DType::Bool => t.rank().max(1),
            PyValue::Num(e) if e.is_bool() => 0,
            _ => 1,
        };
        let taken: usize = items.iter().map(takes).sum();
        if taken > t.rank() {
            return Err(refused(format!("IndexError: too many indices for tensor of dimension {}", t.rank())));
        }
        let mut view = t.clone();
        let mut dim = 0i64;
        let mut indices: Vec<Option<TensorRef>> = Vec::new();
        for item in &items {
            let at = Arg::Scalar(Expr::Int(dim));
            match item {
                PyValue::None => {
                    view = self.rec.tensor("aten.unsqueeze.default", vec![Arg::Value(view), at])?;
                    dim += 1;
                }
                PyValue::Ellipsis => dim += (t.rank() - taken) as i64,
                PyValue::Num(e) if e.is_bool() => {
                    return Err(Error::unsupported("a bool as an index of a tensor"));
                }
                PyValue::Num(e) => {
                    view = self.rec.tensor("aten.select.int", vec![Arg::Value(view), at, Arg::Scalar(e.clone())])?;
                }
                PyValue::Slice(parts) => {
                    let mut bounds = Vec::new();
                    for p in parts.iter() {
                        bounds.push(match p {
                            PyValue::None => None,
                            v => Some(self.number(v)?),
                        });
                    }
                    let none = bounds.iter().all(Option::is_none);
                    if !none {
                        let arg = |e: &Option<Expr>, default: i64| Arg::Scalar(e.clone().unwrap_or(Expr::Int(default)));
                        let args = vec![
                            Arg::Value(view),
                            at,
                            arg(&bounds[0], 0),
                            arg(&bounds[1], i64::MAX),
                            arg(&bounds[2], 1),
                        ];
                        view = self.rec.tensor("aten.slice.Tensor", args)?;
                    }
                    dim += 1;
                }
                PyValue::Tensor(index) => {
                    indices.resize(dim as usize, None);
                    let rank = if index.dtype() == DType::Bool { index.rank().max(1) } else { 1 };
                    indices.push(Some(index.clone()));
                    // A mask of several dimensions is one index.
                    dim += rank as i64;
                    if rank > 1 && dim as usize > indices.len() {
                        self.after_mask(&mut indices, rank)?;
                    }
                }
                PyValue::List(_) => {
                    let made = self.make_tensor(item, None)?;
                    indices.resize(dim as usize, None);
                    indices.push(Some(made));
                    dim += 1;
                }
                other => return Err(refused(format!("{} as an index", other.kind()))),
            }
        }
        Ok((view, indices))
    }

    /// StateAfter a mask of several dimensions, positions no longer count dimensions: only an index that ends there is taken.
    fn after_mask(&mut self, indices: &mut [Option<TensorRef>], _rank: usize) -> Result<()> {
        match indices.iter().filter(|i| i.is_some()).count() {
            1 => Ok(()),
            _ => Err(Error::unsupported("a mask of several dimensions beside another index")),
        }
    }

    /// Whether a container has an item.
    pub(crate) fn contains(&mut self, container: &PyValue, item: &PyValue) -> Result<Expr> {
        match (container, item) {
            (PyValue::Dict(d), _) => {
                let key = self.key(item)?;
                Ok(Expr::Bool(d.borrow().contains_key(&key)))
            }
            (PyValue::Str(s), PyValue::Str(part)) => Ok(Expr::Bool(s.contains(&**part))),
            (PyValue::List(_) | PyValue::Tuple(..), _) => {
                let mut out = Expr::Bool(false);
                for other in container.items().unwrap_or_default() {
                    let same = self.equal(&other, item)?;
                    out = numbers::or(&out, &same);
                }
                Ok(out)
            }
            (PyValue::Object(o), PyValue::Str(name)) => Ok(Expr::Bool(o.attributes.borrow().contains_key(name))),
            _ => Err(refused(format!("{} has no items", container.kind()))),
        }
    }

    /// Whether two values are equal, as a bool.
    pub(crate) fn equal(&mut self, a: &PyValue, b: &PyValue) -> Result<Expr> {
        Ok(match (a, b) {
            (PyValue::Num(x), PyValue::Num(y)) => {
                numbers::binary("eq", x, y)?.unwrap_or_else(|| Expr::call(ExprFn::Eq, vec![x.clone(), y.clone()]))
            }
            (PyValue::Str(x), PyValue::Str(y)) => Expr::Bool(x == y),
            (PyValue::Device(x), PyValue::Device(y)) => Expr::Bool(x == y),
            (PyValue::None, PyValue::None) => Expr::Bool(true),
            (PyValue::DType(x), PyValue::DType(y)) => Expr::Bool(x == y),
            (PyValue::Complex(a, b), PyValue::Complex(c, d)) => Expr::Bool((a, b) == (c, d)),
            (PyValue::List(_) | PyValue::Tuple(..), PyValue::List(_) | PyValue::Tuple(..)) => {
                let (x, y) = (a.items().unwrap_or_default(), b.items().unwrap_or_default());
                if x.len() != y.len() {
                    return Ok(Expr::Bool(false));
                }
                let mut out = Expr::Bool(true);
                for (x, y) in x.iter().zip(&y) {
                    let same = self.equal(x, y)?;
                    out = numbers::and(&out, &same);
                }
                out
            }
            (PyValue::Tensor(x), PyValue::Tensor(y)) => {
                let same = self.rec.tensor("aten.eq.Tensor", vec![Arg::Value(x.clone()), Arg::Value(y.clone())])?;
                numbers::truth(&self.rec.item(&same)?)
            }
            (PyValue::Object(x), PyValue::Object(y)) => Expr::Bool(std::rc::Rc::ptr_eq(x, y)),
            _ => Expr::Bool(false),
        })
    }
}

/// The position of an index that may count from the end.
pub(crate) fn position(at: i64, n: usize) -> Result<usize> {
    let i = if at < 0 { at + n as i64 } else { at };
    if (0..n as i64).contains(&i) {
        return Ok(i as usize);
    }
    Err(refused(format!("IndexError: index {at} of a list of {n}")))
}
