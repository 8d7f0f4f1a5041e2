//! Statements.

use super::growth::fixed_length;
use super::{BlockEnd, Env, Evaluator};
use crate::syntax::ast::{Ast, AstKind, Stmt, StmtKind};
use crate::value::{CodeFunction, PyValue};
use restride_ir::{Error, ErrorKind, Expr, Result};
use std::rc::Rc;
use std::sync::Arc;

impl Evaluator<'_, '_> {
    /// Runs statements until one leaves the block.
    pub(crate) fn block(&mut self, env: &mut Env, stmts: &[Stmt]) -> Result<BlockEnd> {
        for stmt in stmts {
            self.step(1)?;
            let source = env.source.clone();
            self.at(&source, stmt.line);
            let flow = self.statement(env, stmt).map_err(|e| source.place(stmt.line, e))?;
            if !matches!(flow, BlockEnd::Next) {
                return Ok(flow);
            }
            let ends = env.ends.clone();
            for name in ends.after(stmt) {
                env.vars.remove(name);
            }
        }
        Ok(BlockEnd::Next)
    }

    fn statement(&mut self, env: &mut Env, stmt: &Stmt) -> Result<BlockEnd> {
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
                    return Ok(BlockEnd::Raise(message));
                }
                self.expression(env, value)?;
            }
            StmtKind::Return(value) => {
                let value = match value {
                    Some(value) => self.expression(env, value)?,
                    None => PyValue::None,
                };
                return Ok(BlockEnd::Return(value));
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
                        PyValue::Str(s) => s,
                        _ => "AssertionError".into(),
                    },
                    None => "AssertionError".into(),
                };
                if !self.require(condition, &message)? {
                    return Ok(BlockEnd::Raise(message));
                }
            }
            StmtKind::Raise(value) => {
                let message = match value.as_ref().map(|v| &v.kind) {
                    Some(AstKind::Call { args, .. }) => match args.first() {
                        Some((a, _)) => self.expression(env, a)?,
                        None => PyValue::str(""),
                    },
                    _ => PyValue::str(""),
                };
                return Ok(BlockEnd::Raise(if let PyValue::Str(s) = message { s } else { "".into() }));
            }
            StmtKind::Break => return Ok(BlockEnd::Break),
            StmtKind::Continue => return Ok(BlockEnd::Continue),
            StmtKind::Pass | StmtKind::Class(_) => {}
            StmtKind::Def(def) => {
                let function = CodeFunction::new(def.clone(), env.source.clone());
                env.vars.insert(def.name.clone(), PyValue::Function(Rc::new(function)));
            }
        }
        Ok(BlockEnd::Next)
    }

    /// The message of `ops.prim.RaiseException(message, class)`.
    fn raised(&mut self, env: &mut Env, value: &Ast) -> Result<Option<Arc<str>>> {
        let AstKind::Call { callee, args, .. } = &value.kind else { return Ok(None) };
        if callee.dotted().as_deref() != Some("ops.prim.RaiseException") {
            return Ok(None);
        }
        let message = match args.first() {
            Some((a, _)) => self.expression(env, a)?,
            None => PyValue::str(""),
        };
        Ok(Some(if let PyValue::Str(s) = message { s } else { "".into() }))
    }

    /// Records a condition that must hold; false if it is known not to.
    pub(crate) fn require(&mut self, condition: PyValue, message: &str) -> Result<bool> {
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
    pub(crate) fn assign(&mut self, env: &mut Env, target: &Ast, value: PyValue) -> Result<()> {
        match &target.kind {
            AstKind::Name(name) => {
                env.vars.insert(name.clone(), value);
                Ok(())
            }
            AstKind::Attr(base, name) => match self.expression(env, base)? {
                PyValue::Object(object) => self.set_attribute(&object, name, value),
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
    pub(crate) fn unpacked(&mut self, value: &PyValue) -> Result<Vec<PyValue>> {
        match value {
            PyValue::Dict(d) => Ok(d.borrow().keys().map(super::PyKey::value).collect()),
            PyValue::Str(s) => Ok(s.chars().map(|c| PyValue::str(&c.to_string())).collect()),
            PyValue::Tensor(t) => {
                if t.rank() == 0 {
                    return Err(Error::new(ErrorKind::Program, "iteration over a 0-d tensor"));
                }
                match self.dispatch("aten", "unbind", &[PyValue::Tensor(t.clone()), PyValue::int(0)], &[])? {
                    PyValue::List(l) => Ok(l.borrow().clone()),
                    _ => Err(Error::invalid("unbind gives no list")),
                }
            }
            // A module container iterates over its modules.
            PyValue::Object(o) => {
                Ok(o.attributes.borrow().values().filter(|v| matches!(v, PyValue::Object(_))).cloned().collect())
            }
            PyValue::Poison(why) => Err(Error::unsupported(why.to_string())),
            other => {
                fixed_length(other)?;
                other.items().ok_or_else(|| Error::new(ErrorKind::Program, format!("{} has no parts", other.kind())))
            }
        }
    }

    fn with(&mut self, env: &mut Env, items: &[(Ast, Option<Ast>)], body: &[Stmt]) -> Result<BlockEnd> {
        let mut entered = Vec::new();
        let no_grad = self.rec.no_grad;
        for (value, target) in items {
            let value = self.expression(env, value)?;
            let given = match &value {
                PyValue::Object(o) if self.has_method(o, "__enter__")? => {
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
            self.call_method(&object, "__exit__", vec![PyValue::None, PyValue::None, PyValue::None], Vec::new())?;
        }
        self.rec.no_grad = no_grad;
        Ok(flow)
    }

    /// An integer that must be known.
    pub(crate) fn known_int(&mut self, value: &PyValue, what: &str) -> Result<i64> {
        match value {
            PyValue::Num(Expr::Int(i)) => Ok(*i),
            PyValue::Num(Expr::Bool(b)) => Ok(i64::from(*b)),
            PyValue::Num(e) if !e.is_learnt() && !e.is_float() => self.settle(e),
            PyValue::Num(e) => Err(Error::unsupported(format!("{what} is {e}, which only a run knows"))),
            PyValue::Tensor(t) => match self.rec.known_number(t) {
                Some(e) => self.known_int(&PyValue::Num(e), what),
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
