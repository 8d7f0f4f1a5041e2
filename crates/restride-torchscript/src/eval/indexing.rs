//! `x[i]` on lists, tuples, dictionaries, strings and tensors.

use super::expressions::refused;
use super::{Env, Evaluator, numbers};
use crate::record::TensorRef;
use crate::syntax::ast::{Ast, AstKind};
use crate::value::{Key, Value};
use restride_ir::{Arg, DType, Error, Expr, ExprFn, Result};

impl Evaluator<'_, '_> {
    /// An index: slices are values in it.
    pub(crate) fn index_value(&mut self, env: &mut Env, ast: &Ast) -> Result<Value> {
        match &ast.kind {
            AstKind::Slice(a, b, c) => {
                let mut part = |p: &Option<Box<Ast>>| match p {
                    Some(p) => self.expression(env, p),
                    None => Ok(Value::None),
                };
                let parts = [part(a)?, part(b)?, part(c)?];
                Ok(Value::Slice(Box::new(parts)))
            }
            AstKind::Tuple(items) => {
                let items = items.iter().map(|i| self.index_value(env, i)).collect::<Result<Vec<_>>>()?;
                Ok(Value::tuple(items))
            }
            _ => self.expression(env, ast),
        }
    }

    /// `base[index]`
    pub(crate) fn get_item(&mut self, base: Value, index: Value) -> Result<Value> {
        match (&base, &index) {
            (Value::List(_) | Value::Tuple(..), Value::Slice(s)) => {
                let items = base.items().unwrap_or_default();
                let taken = self.sliced(items, s)?;
                Ok(if let Value::List(_) = base { Value::list(taken) } else { Value::tuple(taken) })
            }
            (Value::List(_) | Value::Tuple(..), _) => {
                let items = base.items().unwrap_or_default();
                let at = self.known_int(&index, "an index")?;
                let at = position(at, items.len())?;
                Ok(items[at].clone())
            }
            (Value::Dict(d), _) => {
                let key = Key::of(&index).ok_or_else(|| refused(format!("{} as a key", index.kind())))?;
                let found = d.borrow().get(&key).cloned();
                found.ok_or_else(|| refused(format!("KeyError: {}", self.text(&index))))
            }
            (Value::Str(s), Value::Slice(slice)) => {
                let chars = s.chars().map(|c| Value::str(&c.to_string())).collect();
                let taken = self.sliced(chars, slice)?;
                let text: String = taken.iter().map(|v| self.text(v)).collect();
                Ok(Value::str(&text))
            }
            (Value::Str(s), _) => {
                let chars: Vec<char> = s.chars().collect();
                let at = self.known_int(&index, "an index")?;
                let at = position(at, chars.len())?;
                Ok(Value::str(&chars[at].to_string()))
            }
            (Value::Tensor(t), _) => Ok(Value::Tensor(self.index_tensor(&t.clone(), &index)?)),
            // A container of modules.
            (Value::Object(o), Value::Str(name)) => self.get_attribute(&Value::Object(o.clone()), name),
            (Value::Object(_), _) => {
                let modules = self.unpacked(&base)?;
                let at = self.known_int(&index, "an index")?;
                Ok(modules[position(at, modules.len())?].clone())
            }
            (Value::Poison(why), _) => Err(Error::unsupported(why.to_string())),
            _ => Err(refused(format!("{} has no items", base.kind()))),
        }
    }

    /// Items of a list at a slice.
    pub(crate) fn sliced(&mut self, items: Vec<Value>, slice: &[Value; 3]) -> Result<Vec<Value>> {
        let n = items.len() as i64;
        let mut bound = |v: &Value, default: i64| match v {
            Value::None => Ok(default),
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
                Value::None => -1,
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
    pub(crate) fn set_item(&mut self, base: Value, index: Value, value: Value) -> Result<()> {
        match &base {
            Value::List(l) => {
                let n = l.borrow().len();
                let at = self.known_int(&index, "an index")?;
                let at = position(at, n)?;
                self.note_list(l);
                l.borrow_mut()[at] = value;
                Ok(())
            }
            Value::Dict(d) => {
                let key = Key::of(&index).ok_or_else(|| refused(format!("{} as a key", index.kind())))?;
                self.note_dict(d);
                d.borrow_mut().insert(key, value);
                Ok(())
            }
            Value::Tensor(t) => self.set_tensor_item(&t.clone(), &index, value),
            _ => Err(refused(format!("an item of {} is assigned", base.kind()))),
        }
    }

    /// Python's indexing of a tensor: views for integers and slices, then one index operator for tensors.
    fn index_tensor(&mut self, t: &TensorRef, index: &Value) -> Result<TensorRef> {
        let (view, indices) = self.index_views(t, index)?;
        if indices.iter().all(Option::is_none) {
            return Ok(view);
        }
        self.rec.tensor("aten.index.Tensor", vec![Arg::Value(view), Arg::Values(indices)])
    }

    fn set_tensor_item(&mut self, t: &TensorRef, index: &Value, value: Value) -> Result<()> {
        let (view, indices) = self.index_views(t, index)?;
        let source = match &value {
            Value::Tensor(s) => s.clone(),
            Value::Num(e) if indices.iter().all(Option::is_none) => {
                let args = vec![Arg::Value(view), Arg::Scalar(e.clone())];
                self.rec.tensor("aten.fill_.Scalar", args)?;
                return Ok(());
            }
            Value::Num(e) => self.rec.scalar_tensor(e, t.dtype())?,
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

    fn index_views(&mut self, t: &TensorRef, index: &Value) -> Result<(TensorRef, Vec<Option<TensorRef>>)> {
        let items: Vec<Value> = match index {
            Value::Tuple(items, _) => items.to_vec(),
            other => vec![other.clone()],
        };
        let takes = |v: &Value| match v {
            Value::None | Value::Ellipsis => 0,
            Value::Tensor(t) if t.dtype() == DType::Bool => t.rank().max(1),
            Value::Num(e) if e.is_bool() => 0,
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
                Value::None => {
                    view = self.rec.tensor("aten.unsqueeze.default", vec![Arg::Value(view), at])?;
                    dim += 1;
                }
                Value::Ellipsis => dim += (t.rank() - taken) as i64,
                Value::Num(e) if e.is_bool() => {
                    return Err(Error::unsupported("a bool as an index of a tensor"));
                }
                Value::Num(e) => {
                    view = self.rec.tensor("aten.select.int", vec![Arg::Value(view), at, Arg::Scalar(e.clone())])?;
                }
                Value::Slice(parts) => {
                    let mut bounds = Vec::new();
                    for p in parts.iter() {
                        bounds.push(match p {
                            Value::None => None,
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
                Value::Tensor(index) => {
                    indices.resize(dim as usize, None);
                    let rank = if index.dtype() == DType::Bool { index.rank().max(1) } else { 1 };
                    indices.push(Some(index.clone()));
                    // A mask of several dimensions is one index.
                    dim += rank as i64;
                    if rank > 1 && dim as usize > indices.len() {
                        self.after_mask(&mut indices, rank)?;
                    }
                }
                Value::List(_) => {
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

    /// After a mask of several dimensions, positions no longer count dimensions: only an index that ends there is taken.
    fn after_mask(&mut self, indices: &mut [Option<TensorRef>], _rank: usize) -> Result<()> {
        match indices.iter().filter(|i| i.is_some()).count() {
            1 => Ok(()),
            _ => Err(Error::unsupported("a mask of several dimensions beside another index")),
        }
    }

    /// Whether a container has an item.
    pub(crate) fn contains(&mut self, container: &Value, item: &Value) -> Result<Expr> {
        match (container, item) {
            (Value::Dict(d), _) => Ok(Expr::Bool(Key::of(item).is_some_and(|k| d.borrow().contains_key(&k)))),
            (Value::Str(s), Value::Str(part)) => Ok(Expr::Bool(s.contains(&**part))),
            (Value::List(_) | Value::Tuple(..), _) => {
                let mut out = Expr::Bool(false);
                for other in container.items().unwrap_or_default() {
                    let same = self.equal(&other, item)?;
                    out = numbers::or(&out, &same);
                }
                Ok(out)
            }
            (Value::Object(o), Value::Str(name)) => Ok(Expr::Bool(o.attributes.borrow().contains_key(name))),
            _ => Err(refused(format!("{} has no items", container.kind()))),
        }
    }

    /// Whether two values are equal, as a bool.
    pub(crate) fn equal(&mut self, a: &Value, b: &Value) -> Result<Expr> {
        Ok(match (a, b) {
            (Value::Num(x), Value::Num(y)) => {
                numbers::binary("eq", x, y)?.unwrap_or_else(|| Expr::call(ExprFn::Eq, vec![x.clone(), y.clone()]))
            }
            (Value::Str(x), Value::Str(y)) => Expr::Bool(x == y),
            (Value::Device(x), Value::Device(y)) => Expr::Bool(x == y),
            (Value::None, Value::None) => Expr::Bool(true),
            (Value::DType(x), Value::DType(y)) => Expr::Bool(x == y),
            (Value::Complex(a, b), Value::Complex(c, d)) => Expr::Bool((a, b) == (c, d)),
            (Value::List(_) | Value::Tuple(..), Value::List(_) | Value::Tuple(..)) => {
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
            (Value::Tensor(x), Value::Tensor(y)) => {
                let same = self.rec.tensor("aten.eq.Tensor", vec![Arg::Value(x.clone()), Arg::Value(y.clone())])?;
                numbers::truth(&self.rec.item(&same)?)
            }
            (Value::Object(x), Value::Object(y)) => Expr::Bool(std::rc::Rc::ptr_eq(x, y)),
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
