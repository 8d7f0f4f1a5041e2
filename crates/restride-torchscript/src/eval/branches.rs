//! Branches: taken where the condition is known, recorded as `cond` where data decides.

use super::joins::{Joined, Merged};
use super::{BlockEnd, Change, Env, Evaluator};
use crate::record::{RecordedBody, TensorRef};
use crate::syntax::ast::Stmt;
use crate::value::{DictRef, ListRef, PyObject, PyValue, Shared, moment};
use restride_ir::{Arg, DType, Error, ErrorKind, Expr, Result};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// A condition.
pub(crate) enum Truth {
    /// KnownContent while the code is evaluated.
    Known(bool),
    /// A number that a run learns.
    Number(Expr),
    /// An element of a tensor.
    Data(TensorRef),
}

/// What a branch did.
struct BranchOutcome {
    flow: BlockEnd,
    vars: HashMap<Arc<str>, PyValue>,
    changes: Vec<(ChangedPlace, PyValue)>,
    body: RecordedBody,
}

/// Where a branch changed something.
#[derive(Clone)]
pub(super) enum ChangedPlace {
    Attribute(Rc<PyObject>, Arc<str>),
    List(ListRef),
    Dict(DictRef),
}

impl ChangedPlace {
    /// The list, and the tensor that is its one new item, if the change is that.
    pub(super) fn appended(&self, now: &PyValue) -> Option<(crate::value::ListRef, TensorRef)> {
        let (ChangedPlace::List(list), PyValue::List(now)) = (self, now) else { return None };
        let (old, now) = (list.borrow(), now.borrow());
        let (last, before) = now.split_last()?;
        let kept = before.len() == old.len() && before.iter().zip(old.iter()).all(|(a, b)| same(a, b));
        Some((list.clone(), last.tensor().filter(|_| kept)?.clone()))
    }

    /// What it is, for messages.
    pub(super) fn described(&self) -> String {
        match self {
            ChangedPlace::Attribute(_, name) => format!("the attribute {name}"),
            ChangedPlace::List(_) => "a list otherwise than by appending one tensor".into(),
            ChangedPlace::Dict(_) => "a dictionary".into(),
        }
    }

    fn is(&self, other: &ChangedPlace) -> bool {
        match (self, other) {
            (ChangedPlace::Attribute(a, n), ChangedPlace::Attribute(b, m)) => Rc::ptr_eq(a, b) && n == m,
            (ChangedPlace::List(a), ChangedPlace::List(b)) => Rc::ptr_eq(a, b),
            (ChangedPlace::Dict(a), ChangedPlace::Dict(b)) => Rc::ptr_eq(a, b),
            _ => false,
        }
    }

    fn value(&self) -> PyValue {
        match self {
            ChangedPlace::Attribute(o, n) => o.attributes.borrow().get(n).cloned().unwrap_or(PyValue::None),
            ChangedPlace::List(l) => PyValue::list(l.borrow().clone()),
            ChangedPlace::Dict(d) => PyValue::Dict(Rc::new(Shared::new(d.borrow().clone()))),
        }
    }
}

impl Evaluator<'_, '_> {
    /// A value as a condition.
    pub(crate) fn truth(&mut self, value: PyValue) -> Result<Truth> {
        match value {
            PyValue::Num(e) => Ok(match self.decide(&e)? {
                Some(b) => Truth::Known(b),
                None => Truth::Number(super::numbers::truth(&e)),
            }),
            PyValue::Tensor(t) => match self.rec.known_number(&t) {
                Some(e) => self.truth(PyValue::Num(e)),
                None => {
                    let one = t.ty().layout.sizes.iter().all(|n| matches!(n, Expr::Int(1)));
                    if !one {
                        return Err(Error::new(
                            ErrorKind::Program,
                            "Boolean value of Tensor with more than one value is ambiguous",
                        ));
                    }
                    Ok(Truth::Data(t))
                }
            },
            PyValue::None => Ok(Truth::Known(false)),
            PyValue::Str(s) => Ok(Truth::Known(!s.is_empty())),
            PyValue::List(l) => {
                super::growth::fixed_length(&PyValue::List(l.clone()))?;
                Ok(Truth::Known(!l.borrow().is_empty()))
            }
            PyValue::Tuple(t, _) => Ok(Truth::Known(!t.is_empty())),
            PyValue::Dict(d) => Ok(Truth::Known(!d.borrow().is_empty())),
            PyValue::Poison(why) => Err(Error::unsupported(why.to_string())),
            PyValue::Maybe(_) => Err(Error::unsupported(format!("the truth of {}", value.kind()))),
            _ => Ok(Truth::Known(true)),
        }
    }

    /// Runs an `if`.
    pub(super) fn branch(
        &mut self,
        env: &mut Env,
        condition: PyValue,
        then: &[Stmt],
        other: &[Stmt],
    ) -> Result<BlockEnd> {
        let truth = self.truth(condition)?;
        let (pred, number) = match truth {
            Truth::Known(true) => return self.block(env, then),
            Truth::Known(false) => return self.block(env, other),
            Truth::Number(e) => (None, Some(e)),
            Truth::Data(t) => (Some(t), None),
        };
        // A branch that only raises is a check of the other one's condition.
        for (which, stmts) in [(true, then), (false, other)] {
            let Some(message) = self.only_raises(env, stmts)? else { continue };
            match (&number, &pred) {
                (Some(e), _) => {
                    let holds = if which { super::numbers::not(e) } else { e.clone() };
                    self.rec.assert(&holds, &message)?;
                }
                (_, Some(t)) => {
                    let mut t = self.rec.to_bool(t)?;
                    if which {
                        t = self.rec.tensor("aten.logical_not.default", vec![Arg::Value(t)])?;
                    }
                    let args = vec![Arg::Value(t), Arg::Str(message)];
                    self.rec.call_named("aten._assert_async.msg", args)?;
                }
                _ => {}
            }
            return self.block(env, if which { other } else { then });
        }
        let pred = match (pred, &number) {
            (Some(t), _) => self.rec.to_bool(&t)?,
            (None, Some(e)) => self.rec.condition_tensor(e)?,
            (None, None) => return Err(Error::invalid("a branch without a condition")),
        };
        let first = self.recorded(env, then, "true_graph")?;
        let second = self.recorded(env, other, "false_graph")?;
        match (self.merge(env, &pred, number.as_ref(), first, second), &number) {
            (Err(e), Some(condition)) if e.kind == ErrorKind::Unsupported => {
                self.assumed(env, condition, then, other, e)
            }
            (done, _) => done,
        }
    }

    /// A branch on a size from data whose sides do not join: the side for sizes other than 0 and 1 is taken, and a run checks
    /// that the condition is as assumed.
    fn assumed(
        &mut self,
        env: &mut Env,
        condition: &Expr,
        then: &[Stmt],
        other: &[Stmt],
        e: Error,
    ) -> Result<BlockEnd> {
        let mut symbols = std::collections::BTreeSet::new();
        condition.symbols(&mut symbols);
        let mut at = self.hints.clone();
        for symbol in &symbols {
            let size = symbol.is_unbacked() && symbol.min() == Some(0) && symbol.max() != Some(1);
            if size {
                at.insert(symbol.clone(), restride_ir::Scalar::Int(symbol.max().unwrap_or(7).min(7)));
            } else if !at.contains_key(symbol) {
                return Err(e);
            }
        }
        let Ok(holds) = condition.eval(&at).map(restride_ir::Scalar::as_bool) else { return Err(e) };
        let holding = if holds { condition.clone() } else { super::numbers::not(condition) };
        let message =
            format!("the program was recorded for {holding}, as the branches give results of different sizes");
        self.rec.assert(&holding, &message)?;
        let note = format!("recorded for {holding}; a run with other data is refused");
        self.rec.program.notes.push(note);
        self.block(env, if holds { then } else { other })
    }

    /// The message, if the statements do nothing but raise.
    fn only_raises(&mut self, env: &mut Env, stmts: &[Stmt]) -> Result<Option<Arc<str>>> {
        use crate::syntax::ast::{AstKind, StmtKind};
        let raises = |s: &Stmt| match &s.kind {
            StmtKind::Raise(_) => true,
            StmtKind::Expr(e) => {
                matches!(&e.kind, AstKind::Call { callee, .. } if callee.dotted().as_deref() == Some("ops.prim.RaiseException"))
            }
            _ => false,
        };
        let Some(at) = stmts.iter().position(raises) else { return Ok(None) };
        // Before it, the message is put together; after it come values that nothing reads.
        self.rec.enter("raise")?;
        let mut inside = env.inside();
        let outcome = self.transaction(|e| e.block(&mut inside, &stmts[..=at]));
        self.rec.leave();
        let (flow, changes) = match outcome {
            // A message that a run alone knows: the block raises all the same.
            Err(e) if e.kind == ErrorKind::Unsupported => return Ok(Some("".into())),
            other => other?,
        };
        Ok(match flow {
            BlockEnd::Raise(message) if changes.is_empty() => Some(message),
            _ => None,
        })
    }

    /// Runs a branch into a body, and takes back what it changed.
    fn recorded(&mut self, env: &Env, stmts: &[Stmt], name: &str) -> Result<BranchOutcome> {
        self.rec.enter(name)?;
        let mut inside = env.inside();
        let outcome = self.transaction(|e| e.block(&mut inside, stmts));
        let body = self.rec.leave();
        let (flow, changes) = outcome?;
        Ok(BranchOutcome { flow, vars: inside.vars, changes, body })
    }

    /// Runs something, takes back its changes of attributes, lists and dictionaries, and returns them.
    fn undone<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<(T, Vec<(ChangedPlace, PyValue)>)> {
        let (start, began) = (self.journal.len(), moment());
        self.journaling += 1;
        let out = f(self);
        self.journaling -= 1;
        let mut made: Vec<Change> = self.journal.drain(start..).collect();
        // Nothing outside knows what was made inside.
        made.retain(|change| !match change {
            Change::Attribute(o, ..) => o.attributes.is_made_since(began),
            Change::List(l, _) => l.is_made_since(began),
            Change::Dict(d, _) => d.is_made_since(began),
        });
        let mut places: Vec<(ChangedPlace, PyValue)> = Vec::new();
        for change in &made {
            let place = match change {
                Change::Attribute(o, n, _) => ChangedPlace::Attribute(o.clone(), n.clone()),
                Change::List(l, _) => ChangedPlace::List(l.clone()),
                Change::Dict(d, _) => ChangedPlace::Dict(d.clone()),
            };
            if places.iter().all(|(p, _)| !p.is(&place)) {
                let now = place.value();
                places.push((place, now));
            }
        }
        for change in made.into_iter().rev() {
            match change {
                Change::Attribute(o, n, Some(old)) => {
                    o.attributes.borrow_mut().insert(n, old);
                }
                Change::Attribute(o, n, None) => {
                    o.attributes.borrow_mut().shift_remove(&n);
                }
                Change::List(l, old) => *l.borrow_mut() = old,
                Change::Dict(d, old) => *d.borrow_mut() = old,
            }
        }
        Ok((out?, places))
    }

    /// As [`Self::undone`], with the changes counted only.
    pub(super) fn transaction<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<(T, BranchChanges)> {
        let (out, places) = self.undone(f)?;
        Ok((out, places))
    }

    /// Notes an attribute before it is changed.
    pub(crate) fn note_attribute(&mut self, object: &Rc<PyObject>, name: &Arc<str>) {
        if self.journaling > 0 {
            let old = object.attributes.borrow().get(name).cloned();
            self.journal.push(Change::Attribute(object.clone(), name.clone(), old));
        }
    }

    /// Notes a list before it is changed.
    pub(crate) fn note_list(&mut self, list: &crate::value::ListRef) {
        if self.journaling > 0 {
            self.journal.push(Change::List(list.clone(), list.borrow().clone()));
        }
    }

    /// Notes a dictionary before it is changed.
    pub(crate) fn note_dict(&mut self, dict: &crate::value::DictRef) {
        if self.journaling > 0 {
            self.journal.push(Change::Dict(dict.clone(), dict.borrow().clone()));
        }
    }

    /// Joins two branches: values that differ become results of a `cond`.
    fn merge(
        &mut self,
        env: &mut Env,
        pred: &TensorRef,
        number: Option<&Expr>,
        a: BranchOutcome,
        b: BranchOutcome,
    ) -> Result<BlockEnd> {
        let returns = match (&a.flow, &b.flow) {
            (BlockEnd::Next, BlockEnd::Next) => None,
            (BlockEnd::Return(x), BlockEnd::Return(y)) => Some((x.clone(), y.clone())),
            (BlockEnd::Continue, BlockEnd::Continue) => None,
            _ => {
                return Err(Error::unsupported(
                    "a branch on data leaves the block (return, break, continue or raise) and the other does not",
                ));
            }
        };
        let continues = matches!(a.flow, BlockEnd::Continue);
        let mut joined = Joined {
            pred: pred.clone(),
            condition: number.cloned(),
            pairs: Vec::new(),
            shown: Vec::new(),
            bodies: [Some(a.body), Some(b.body)],
        };
        let mut vars: Vec<(Arc<str>, Merged)> = Vec::new();
        let mut names: Vec<&Arc<str>> = a.vars.keys().chain(b.vars.keys()).collect();
        names.sort();
        names.dedup();
        for name in names {
            let merged = match (a.vars.get(name), b.vars.get(name)) {
                (Some(x), Some(y)) => {
                    if env.vars.get(name).is_some_and(|old| same(old, x) && same(old, y)) {
                        continue;
                    }
                    self.pair(&mut joined, x, y)?
                }
                _ => Merged::Poison(format!("{name} has a value in one branch on data alone").into()),
            };
            vars.push((name.clone(), merged));
        }
        let mut places: Vec<(ChangedPlace, Merged)> = Vec::new();
        let all: Vec<&(ChangedPlace, PyValue)> = a.changes.iter().chain(&b.changes).collect();
        for (place, _) in &all {
            if places.iter().any(|(p, _)| p.is(place)) {
                continue;
            }
            let of = |changes: &[(ChangedPlace, PyValue)]| {
                changes.iter().find(|(p, _)| p.is(place)).map_or_else(|| place.value(), |(_, v)| v.clone())
            };
            let merged = self.pair(&mut joined, &of(&a.changes), &of(&b.changes))?;
            if let Merged::Poison(why) = &merged {
                return Err(Error::unsupported(format!("a branch on data changes an attribute or a list: {why}")));
            }
            places.push((place.clone(), merged));
        }
        let returned = match returns {
            Some((x, y)) => Some(self.pair(&mut joined, &x, &y)?),
            None => None,
        };
        let [Some(first), Some(second)] = joined.bodies.each_mut().map(Option::take) else {
            return Err(Error::invalid("a branch without a body"));
        };
        let results = self.rec.cond(pred, [first, second], &joined.pairs)?;
        for (k, item) in &joined.shown {
            self.rec.may_share(&results[*k], item);
        }
        for (name, merged) in vars {
            let value = self.merged(&merged, &results)?;
            env.vars.insert(name, value);
        }
        for (place, merged) in places {
            let value = self.merged(&merged, &results)?;
            match (place, value) {
                (ChangedPlace::Attribute(o, n), value) => self.set_attribute(&o, &n, value)?,
                (ChangedPlace::List(l), PyValue::List(new)) => {
                    self.note_list(&l);
                    let new = new.borrow().clone();
                    *l.borrow_mut() = new;
                }
                (ChangedPlace::Dict(d), PyValue::Dict(new)) => {
                    self.note_dict(&d);
                    let new = new.borrow().clone();
                    *d.borrow_mut() = new;
                }
                _ => return Err(Error::invalid("a branch turns a list into something else")),
            }
        }
        Ok(match returned {
            Some(merged) => BlockEnd::Return(self.merged(&merged, &results)?),
            None if continues => BlockEnd::Continue,
            None => BlockEnd::Next,
        })
    }
}

/// BranchChanges of a run that were taken back.
pub(super) type BranchChanges = Vec<(ChangedPlace, PyValue)>;

/// Whether a tensor may stand for a truth value.
pub(super) fn is_flag(t: &TensorRef) -> bool {
    t.dtype() == DType::Bool && t.rank() == 0
}

/// Whether two values are one and the same.
pub(super) fn same(a: &PyValue, b: &PyValue) -> bool {
    match (a, b) {
        (PyValue::None, PyValue::None)
        | (PyValue::Ellipsis, PyValue::Ellipsis)
        | (PyValue::Strided, PyValue::Strided) => true,
        (PyValue::Num(x), PyValue::Num(y)) => x == y,
        (PyValue::Complex(a, b), PyValue::Complex(c, d)) => (a, b) == (c, d),
        (PyValue::Str(x), PyValue::Str(y)) | (PyValue::Device(x), PyValue::Device(y)) => x == y,
        (PyValue::Global(x), PyValue::Global(y)) | (PyValue::Path(x), PyValue::Path(y)) => x == y,
        (PyValue::DType(x), PyValue::DType(y)) => x == y,
        (PyValue::MemoryFormat(x), PyValue::MemoryFormat(y)) => x == y,
        (PyValue::Tensor(x), PyValue::Tensor(y)) | (PyValue::Rows(x), PyValue::Rows(y)) => Rc::ptr_eq(x, y),
        (PyValue::List(x), PyValue::List(y)) => Rc::ptr_eq(x, y),
        (PyValue::Dict(x), PyValue::Dict(y)) => Rc::ptr_eq(x, y),
        (PyValue::Object(x), PyValue::Object(y)) => Rc::ptr_eq(x, y),
        (PyValue::Function(x), PyValue::Function(y)) => Rc::ptr_eq(x, y),
        (PyValue::Tuple(x, _), PyValue::Tuple(y, _)) => {
            x.len() == y.len() && x.iter().zip(y.iter()).all(|(x, y)| same(x, y))
        }
        (PyValue::Poison(_), PyValue::Poison(_)) => true,
        (PyValue::Maybe(x), PyValue::Maybe(y)) => Rc::ptr_eq(x, y),
        _ => false,
    }
}
