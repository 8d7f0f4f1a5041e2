//! Statements.

use super::{Env, Evaluator, Flow};
use crate::syntax::ast::{Ast, AstKind, Stmt, StmtKind};
use crate::value::{Function, Value};
use restride_ir::{Error, ErrorKind, Expr, Result};
use std::rc::Rc;
use std::sync::Arc;

impl Evaluator<'_, '_> {
    /// Runs statements until one leaves the block.
    pub(crate) fn block(&mut self, env: &mut Env, stmts: &[Stmt]) -> Result<Flow> {
        for stmt in stmts {
            self.step(1)?;
            let source = env.source.clone();
            self.at(&source, stmt.line);
            let flow = self.statement(env, stmt).map_err(|e| source.place(stmt.line, e))?;
            if !matches!(flow, Flow::Next) {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn statement(&mut self, env: &mut Env, stmt: &Stmt) -> Result<Flow> {
        match &stmt.kind {
            StmtKind::Assign(targets, value) => {
                let value = self.expression(env, value)?;
                for target in targets {
                    self.assign(env, target, value.clone())?;
                }
            }
            StmtKind::Annotated(target, _, value) => {
                if let Some(value) = value {
                    let value = self.expression(env, value)?;
                    self.assign(env, target, value)?;
                }
            }
            StmtKind::Augmented(op, target, value) => {
                let old = self.expression(env, target)?;
                let by = self.expression(env, value)?;
                let new = self.operator_call(op, old, by)?;
                self.assign(env, target, new)?;
            }
            StmtKind::Expr(value) => {
                if let Some(message) = self.raised(env, value)? {
                    return Ok(Flow::Raise(message));
                }
                self.expression(env, value)?;
            }
            StmtKind::Return(value) => {
                let value = match value {
                    Some(value) => self.expression(env, value)?,
                    None => Value::None,
                };
                return Ok(Flow::Return(value));
            }
            StmtKind::If(condition, then, other) => {
                let condition = self.expression(env, condition)?;
                return self.branch(env, condition, then, other);
            }
            StmtKind::While(condition, body) => return self.while_statement(env, condition, body),
            StmtKind::For(target, iter, body) => return self.for_statement(env, target, iter, body),
            StmtKind::With(items, body) => return self.with(env, items, body),
            StmtKind::Assert(condition, message) => {
                let condition = self.expression(env, condition)?;
                let message = match message {
                    Some(m) => match self.expression(env, m)? {
                        Value::Str(s) => s,
                        _ => "AssertionError".into(),
                    },
                    None => "AssertionError".into(),
                };
                if !self.require(condition, &message)? {
                    return Ok(Flow::Raise(message));
                }
            }
            StmtKind::Raise(value) => {
                let message = match value.as_ref().map(|v| &v.kind) {
                    Some(AstKind::Call { args, .. }) => match args.first() {
                        Some((a, _)) => self.expression(env, a)?,
                        None => Value::str(""),
                    },
                    _ => Value::str(""),
                };
                return Ok(Flow::Raise(if let Value::Str(s) = message { s } else { "".into() }));
            }
            StmtKind::Break => return Ok(Flow::Break),
            StmtKind::Continue => return Ok(Flow::Continue),
            StmtKind::Pass | StmtKind::Class(_) => {}
            StmtKind::Def(def) => {
                let function = Function { def: def.clone(), source: env.source.clone() };
                env.vars.insert(def.name.clone(), Value::Function(Rc::new(function)));
            }
        }
        Ok(Flow::Next)
    }

    /// The message of `ops.prim.RaiseException(message, class)`.
    fn raised(&mut self, env: &mut Env, value: &Ast) -> Result<Option<Arc<str>>> {
        let AstKind::Call { callee, args, .. } = &value.kind else { return Ok(None) };
        if callee.dotted().as_deref() != Some("ops.prim.RaiseException") {
            return Ok(None);
        }
        let message = match args.first() {
            Some((a, _)) => self.expression(env, a)?,
            None => Value::str(""),
        };
        Ok(Some(if let Value::Str(s) = message { s } else { "".into() }))
    }

    /// Records a condition that must hold; false if it is known not to.
    pub(crate) fn require(&mut self, condition: Value, message: &str) -> Result<bool> {
        match self.truth(condition)? {
            super::branches::Truth::Known(b) => Ok(b),
            super::branches::Truth::Number(e) => {
                self.rec.assert(&e, message)?;
                Ok(true)
            }
            super::branches::Truth::Data(t) => {
                let t = self.rec.to_bool(&t)?;
                let args = vec![restride_ir::Arg::Value(t), restride_ir::Arg::Str(message.into())];
                self.rec.call_named("aten._assert_async.msg", args)?;
                Ok(true)
            }
        }
    }

    /// Assigns to a name, an attribute, an item, or each of several.
    pub(crate) fn assign(&mut self, env: &mut Env, target: &Ast, value: Value) -> Result<()> {
        match &target.kind {
            AstKind::Name(name) => {
                env.vars.insert(name.clone(), value);
                Ok(())
            }
            AstKind::Attr(base, name) => match self.expression(env, base)? {
                Value::Object(object) => self.set_attribute(&object, name, value),
                other => Err(Error::unsupported(format!("an attribute of {} is assigned", other.kind()))),
            },
            AstKind::Index(base, index) => {
                let base = self.expression(env, base)?;
                let index = self.index_value(env, index)?;
                self.set_item(base, index, value)
            }
            AstKind::Tuple(targets) | AstKind::List(targets) => {
                let items = self.unpacked(&value)?;
                if items.len() != targets.len() {
                    let what = format!("{} values for {} names", items.len(), targets.len());
                    return Err(Error::new(ErrorKind::Program, what));
                }
                for (target, item) in targets.iter().zip(items) {
                    self.assign(env, target, item)?;
                }
                Ok(())
            }
            _ => Err(Error::new(ErrorKind::File, "a value is assigned to something other than a name")),
        }
    }

    /// The parts of a value that is assigned to several names or looped over.
    pub(crate) fn unpacked(&mut self, value: &Value) -> Result<Vec<Value>> {
        match value {
            Value::Dict(d) => Ok(d.borrow().keys().map(super::Key::value).collect()),
            Value::Str(s) => Ok(s.chars().map(|c| Value::str(&c.to_string())).collect()),
            Value::Tensor(t) => {
                if t.rank() == 0 {
                    return Err(Error::new(ErrorKind::Program, "iteration over a 0-d tensor"));
                }
                match self.dispatch("aten", "unbind", &[Value::Tensor(t.clone()), Value::int(0)], &[])? {
                    Value::List(l) => Ok(l.borrow().clone()),
                    _ => Err(Error::invalid("unbind gives no list")),
                }
            }
            // A module container iterates over its modules.
            Value::Object(o) => {
                Ok(o.attributes.borrow().values().filter(|v| matches!(v, Value::Object(_))).cloned().collect())
            }
            Value::Poison(why) => Err(Error::unsupported(why.to_string())),
            other => {
                other.items().ok_or_else(|| Error::new(ErrorKind::Program, format!("{} has no parts", other.kind())))
            }
        }
    }

    fn with(&mut self, env: &mut Env, items: &[(Ast, Option<Ast>)], body: &[Stmt]) -> Result<Flow> {
        let mut entered = Vec::new();
        let no_grad = self.rec.no_grad;
        for (value, target) in items {
            let value = self.expression(env, value)?;
            let given = match &value {
                Value::Object(o) if self.has_method(o, "__enter__")? => {
                    let given = self.call_method(o, "__enter__", Vec::new(), Vec::new())?;
                    entered.push(o.clone());
                    given
                }
                // `torch.no_grad()` and the profiler's ranges are values of their own.
                other => other.clone(),
            };
            if let Some(target) = target {
                self.assign(env, target, given)?;
            }
        }
        let flow = self.block(env, body)?;
        for object in entered.into_iter().rev() {
            self.call_method(&object, "__exit__", vec![Value::None, Value::None, Value::None], Vec::new())?;
        }
        self.rec.no_grad = no_grad;
        Ok(flow)
    }

    /// An integer that must be known.
    pub(crate) fn known_int(&mut self, value: &Value, what: &str) -> Result<i64> {
        match value {
            Value::Num(Expr::Int(i)) => Ok(*i),
            Value::Num(Expr::Bool(b)) => Ok(i64::from(*b)),
            Value::Num(e) if !e.is_learnt() && !e.is_float() => self.settle(e),
            Value::Num(e) => Err(Error::unsupported(format!("{what} is {e}, which only a run knows"))),
            Value::Tensor(t) => match self.rec.known_number(t) {
                Some(e) => self.known_int(&Value::Num(e), what),
                None => Err(Error::unsupported(format!("{what} is in a tensor, which only a run knows"))),
            },
            other => Err(Error::new(ErrorKind::Program, format!("{what} is {}, an integer is needed", other.kind()))),
        }
    }

    /// The value that a size has with the given inputs; the program is guarded for it.
    fn settle(&mut self, e: &Expr) -> Result<i64> {
        let n = e.eval(&self.hints).map_err(Error::unsupported)?.as_i64();
        let same = Expr::call(restride_ir::ExprFn::Eq, vec![e.clone(), Expr::Int(n)]);
        self.decide(&same)?;
        Ok(n)
    }
}
