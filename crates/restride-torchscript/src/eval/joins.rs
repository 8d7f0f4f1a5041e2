//! Values of two branches on data become one: what differs are results of the `cond`.

use super::branches::{is_flag, same};
use super::{Evaluator, PyKey};
use crate::record::{RecordedBody, TensorRef};
use crate::value::{Fields, MaybeSet, PyValue, Shared};
use restride_ir::{Arg, DType, Error, Expr, Result};
use std::rc::Rc;
use std::sync::Arc;

pub(super) struct Joined {
    /// The condition, as a tensor.
    pub(super) pred: TensorRef,
    /// The condition, where it is a number.
    pub(super) condition: Option<Expr>,
    pub(super) pairs: Vec<[TensorRef; 2]>,
    /// Tensors whose memory a pair's items show.
    pub(super) shown: Vec<(usize, TensorRef)>,
    pub(super) bodies: [Option<RecordedBody>; 2],
}

impl Joined {
    /// Adds tensors that the bodies give.
    fn tensors(&mut self, pair: [TensorRef; 2], kind: fn(usize) -> Merged) -> Merged {
        self.pairs.push(pair);
        kind(self.pairs.len() - 1)
    }

    /// One of two numbers by the condition, as an expression of the graph outside.
    fn chosen(&self, x: &Expr, y: &Expr) -> Option<Expr> {
        let condition = self.condition.as_ref()?;
        if x.is_learnt() || y.is_learnt() {
            return None;
        }
        match (x, y) {
            (Expr::Bool(true), Expr::Bool(false)) => Some(condition.clone()),
            (Expr::Bool(false), Expr::Bool(true)) => Some(super::numbers::not(condition)),
            _ if x.is_bool() || y.is_bool() || x.is_float() != y.is_float() => None,
            _ => Some(Expr::call(restride_ir::ExprFn::Where, vec![condition.clone(), x.clone(), y.clone()])),
        }
    }
}

/// How two values become one.
pub(super) enum Merged {
    Same(PyValue),
    Tensor(usize),
    Number(usize),
    /// Items of a list whose length data decides.
    Rows(usize),
    Tuple(Vec<Merged>, Option<Rc<Fields>>),
    List(Vec<Merged>),
    Dict(Vec<(PyKey, Merged)>),
    /// Whether it is set, and the value.
    Maybe(Box<Merged>, Box<Merged>),
    Poison(Arc<str>),
}

impl Evaluator<'_, '_> {
    /// How two values become one; tensors that differ are added to the results of the `cond`.
    pub(super) fn pair(&mut self, joined: &mut Joined, a: &PyValue, b: &PyValue) -> Result<Merged> {
        if same(a, b) {
            return Ok(Merged::Same(a.clone()));
        }
        Ok(match (a, b) {
            (PyValue::Tensor(x), PyValue::Tensor(y)) => joined.tensors([x.clone(), y.clone()], Merged::Tensor),
            (PyValue::Num(x), PyValue::Num(y)) if joined.chosen(x, y).is_some() => {
                Merged::Same(PyValue::Num(joined.chosen(x, y).expect("just found")))
            }
            // Truth values from data stay tensors, which branches read.
            (PyValue::Num(x), PyValue::Num(y)) if x.is_bool() && y.is_bool() => match (x, y) {
                (Expr::Bool(true), Expr::Bool(false)) => Merged::Same(PyValue::Tensor(joined.pred.clone())),
                (Expr::Bool(false), Expr::Bool(true)) => {
                    let pred = Arg::Value(joined.pred.clone());
                    Merged::Same(PyValue::Tensor(self.rec.tensor("aten.logical_not.default", vec![pred])?))
                }
                _ => self.numbers(joined, [x, y], DType::Bool, Merged::Tensor)?,
            },
            (PyValue::Num(x), PyValue::Tensor(y)) if x.is_bool() && is_flag(y) => {
                let x = self.in_body(joined, 0, |e| e.rec.scalar_tensor(x, DType::Bool))?;
                joined.tensors([x, y.clone()], Merged::Tensor)
            }
            (PyValue::Tensor(x), PyValue::Num(y)) if is_flag(x) && y.is_bool() => {
                let y = self.in_body(joined, 1, |e| e.rec.scalar_tensor(y, DType::Bool))?;
                joined.tensors([x.clone(), y], Merged::Tensor)
            }
            (PyValue::Num(x), PyValue::Num(y)) => {
                let dtype = if x.is_float() || y.is_float() { DType::F64 } else { DType::I64 };
                self.numbers(joined, [x, y], dtype, Merged::Number)?
            }
            (PyValue::None | PyValue::Maybe(_), b) if !matches!(b, PyValue::Poison(_)) => {
                self.either_set(joined, a, b)?
            }
            (a, PyValue::None | PyValue::Maybe(_)) if !matches!(a, PyValue::Poison(_)) => {
                self.either_set(joined, a, b)?
            }
            (PyValue::Poison(_), set) if a.is_uninitialized() => self.set_in_one(joined, 1, set)?,
            (set, PyValue::Poison(_)) if b.is_uninitialized() => self.set_in_one(joined, 0, set)?,
            (PyValue::Tuple(x, fields), PyValue::Tuple(y, _)) if x.len() == y.len() => {
                let parts = x.iter().zip(y.iter()).map(|(x, y)| self.pair(joined, x, y)).collect::<Result<_>>()?;
                Merged::Tuple(parts, fields.clone())
            }
            (PyValue::List(x), PyValue::List(y)) => {
                let (x, y) = (x.borrow().clone(), y.borrow().clone());
                let start = x.iter().zip(&y).take_while(|(x, y)| same(x, y)).count();
                let rows = x[start..].iter().chain(&y[start..]).any(|v| matches!(v, PyValue::Rows(_)));
                let mut parts: Vec<Merged> = x[..start].iter().cloned().map(Merged::Same).collect();
                if rows || x.len() != y.len() {
                    match self.either_rows(joined, [&x[start..], &y[start..]])? {
                        rows @ Merged::Rows(_) => parts.push(rows),
                        other => return Ok(other),
                    }
                } else {
                    for (x, y) in x[start..].iter().zip(&y[start..]) {
                        parts.push(self.pair(joined, x, y)?);
                    }
                }
                Merged::List(parts)
            }
            (PyValue::Dict(x), PyValue::Dict(y)) if x.borrow().keys().eq(y.borrow().keys()) => {
                let (x, y) = (x.borrow().clone(), y.borrow().clone());
                let mut parts = Vec::new();
                for (key, x) in &x {
                    parts.push((key.clone(), self.pair(joined, x, &y[key])?));
                }
                Merged::Dict(parts)
            }
            (a, b) => Merged::Poison(
                format!("a branch on data gives {} or {}, and one kind of value is needed", a.kind(), b.kind()).into(),
            ),
        })
    }

    /// Joins two values where one of them is `None` or may be.
    fn either_set(&mut self, joined: &mut Joined, a: &PyValue, b: &PyValue) -> Result<Merged> {
        let parts = |v: &PyValue| match v {
            PyValue::None => (PyValue::bool(false), None),
            PyValue::Maybe(maybe) => (PyValue::Tensor(maybe.is_set.clone()), Some(maybe.value.clone())),
            v => (PyValue::bool(true), Some(v.clone())),
        };
        let ((a_set, a), (b_set, b)) = (parts(a), parts(b));
        let is_set = self.pair(joined, &a_set, &b_set)?;
        let value = match (&a, &b) {
            (Some(a), Some(b)) => self.pair(joined, a, b)?,
            (Some(set), None) => self.set_in_one(joined, 0, set)?,
            (None, Some(set)) => self.set_in_one(joined, 1, set)?,
            (None, None) => Merged::Same(PyValue::None),
        };
        Ok(Merged::Maybe(Box::new(is_set), Box::new(value)))
    }

    /// Two numbers that the bodies give as tensors.
    fn numbers(
        &mut self,
        joined: &mut Joined,
        numbers: [&Expr; 2],
        dtype: DType,
        kind: fn(usize) -> Merged,
    ) -> Result<Merged> {
        let x = self.in_body(joined, 0, |e| e.rec.scalar_tensor(numbers[0], dtype))?;
        let y = self.in_body(joined, 1, |e| e.rec.scalar_tensor(numbers[1], dtype))?;
        Ok(joined.tensors([x, y], kind))
    }

    /// Records more calls in a body.
    pub(super) fn in_body<T>(
        &mut self,
        joined: &mut Joined,
        which: usize,
        calls: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let Some(body) = joined.bodies[which].take() else { return Err(Error::invalid("no body")) };
        self.rec.resume(body);
        let made = calls(self);
        joined.bodies[which] = Some(self.rec.leave());
        made
    }

    /// A value that only the body `which` sets: nothing reads it where the other one ran, which may give any value of its type.
    fn set_in_one(&mut self, joined: &mut Joined, which: usize, set: &PyValue) -> Result<Merged> {
        let local = |e: &mut Self| Ok(set.tensor().is_some_and(|t| e.rec.is_local(t)));
        let other = match set {
            PyValue::Tensor(t) if self.in_body(joined, which, local)? => {
                let ty = t.ty();
                let zeros = self.in_body(joined, 1 - which, |e| {
                    let size = |n: &Expr| if e.rec.known_before_body(n) { n.clone() } else { Expr::Int(0) };
                    let sizes = ty.layout.sizes.iter().map(size).collect();
                    e.rec.tensor("aten.zeros.default", vec![Arg::Scalars(sizes), Arg::DType(ty.dtype)])
                })?;
                PyValue::Tensor(zeros)
            }
            PyValue::Num(e) if !e.is_learnt() => return Ok(Merged::Same(set.clone())),
            PyValue::Num(e) if e.is_bool() => PyValue::bool(false),
            PyValue::Num(e) if e.is_float() => PyValue::float(0.0),
            PyValue::Num(_) => PyValue::int(0),
            PyValue::Tuple(items, fields) => {
                let parts = items.iter().map(|v| self.set_in_one(joined, which, v)).collect::<Result<_>>()?;
                return Ok(Merged::Tuple(parts, fields.clone()));
            }
            PyValue::List(items) => {
                let items = items.borrow().clone();
                let parts = items.iter().map(|v| self.set_in_one(joined, which, v)).collect::<Result<_>>()?;
                return Ok(Merged::List(parts));
            }
            PyValue::Dict(items) => {
                let items = items.borrow().clone();
                let part = |(k, v): (&PyKey, &PyValue)| Ok((k.clone(), self.set_in_one(joined, which, v)?));
                return Ok(Merged::Dict(items.iter().map(part).collect::<Result<_>>()?));
            }
            _ => return Ok(Merged::Same(set.clone())),
        };
        if which == 0 { self.pair(joined, set, &other) } else { self.pair(joined, &other, set) }
    }

    pub(super) fn merged(&mut self, merged: &Merged, results: &[TensorRef]) -> Result<PyValue> {
        Ok(match merged {
            Merged::Same(v) => v.clone(),
            Merged::Tensor(i) => PyValue::Tensor(results[*i].clone()),
            Merged::Rows(i) => PyValue::Rows(results[*i].clone()),
            Merged::Number(i) => PyValue::Num(self.rec.item(&results[*i])?),
            Merged::Tuple(parts, fields) => {
                let parts = parts.iter().map(|p| self.merged(p, results)).collect::<Result<Vec<_>>>()?;
                PyValue::Tuple(parts.into(), fields.clone())
            }
            Merged::List(parts) => {
                PyValue::list(parts.iter().map(|p| self.merged(p, results)).collect::<Result<Vec<_>>>()?)
            }
            Merged::Dict(parts) => {
                let mut out = indexmap::IndexMap::new();
                for (k, p) in parts {
                    out.insert(k.clone(), self.merged(p, results)?);
                }
                PyValue::Dict(Rc::new(Shared::new(out)))
            }
            Merged::Maybe(is_set, value) => {
                let value = self.merged(value, results)?;
                match (self.merged(is_set, results)?, value) {
                    (_, PyValue::Poison(why)) => PyValue::Poison(why),
                    (PyValue::Tensor(is_set), value) => PyValue::Maybe(Rc::new(MaybeSet { is_set, value })),
                    (PyValue::Num(e), value) => {
                        let is_set = self.rec.condition_tensor(&e)?;
                        PyValue::Maybe(Rc::new(MaybeSet { is_set, value }))
                    }
                    _ => return Err(Error::invalid("a condition that is no truth value")),
                }
            }
            Merged::Poison(why) => PyValue::Poison(why.clone()),
        })
    }
}
