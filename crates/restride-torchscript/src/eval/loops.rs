//! Loops: unrolled where numbers decide, `while_loop` where data does.

use super::branches::Truth;
use super::{BlockEnd, Env, Evaluator};
use crate::record::TensorRef;
use crate::syntax::ast::{Ast, AstKind, Stmt};
use crate::value::PyValue;
use restride_ir::{Arg, DType, Error, Expr, Result};
use std::sync::Arc;

impl Evaluator<'_, '_> {
    pub(super) fn while_statement(&mut self, env: &mut Env, condition: &Ast, body: &[Stmt]) -> Result<BlockEnd> {
        let source = env.source.clone();
        loop {
            self.step(1)?;
            self.at(&source, condition.line);
            let value = self.expression(env, condition)?;
            match self.truth(value)? {
                Truth::Known(false) => return Ok(BlockEnd::Next),
                Truth::Known(true) => {}
                Truth::Number(_) | Truth::Data(_) => {
                    self.data_loop(env, condition, body, None)?;
                    return Ok(BlockEnd::Next);
                }
            }
            match self.block(env, body)? {
                BlockEnd::Next | BlockEnd::Continue => {}
                BlockEnd::Break => return Ok(BlockEnd::Next),
                other => return Ok(other),
            }
        }
    }

    pub(super) fn for_statement(&mut self, env: &mut Env, target: &Ast, iter: &Ast, body: &[Stmt]) -> Result<BlockEnd> {
        if let AstKind::Call { callee, args, .. } = &iter.kind
            && matches!(&callee.kind, AstKind::Name(n) if **n == *"range")
            && args.len() == 1
        {
            let trips = self.expression(env, &args[0].0)?;
            let trips = match trips {
                PyValue::Tensor(t) => PyValue::Num(self.rec.item(&t)?),
                other => other,
            };
            if let PyValue::Num(e) = &trips
                && e.is_learnt()
            {
                let trips = e.clone();
                self.data_loop(env, target, body, Some(trips))?;
                return Ok(BlockEnd::Next);
            }
            let n = self.known_int(&trips, "the number of iterations")?;
            for i in 0..n.max(0) {
                self.step(1)?;
                self.assign(env, target, PyValue::int(i))?;
                match self.block(env, body)? {
                    BlockEnd::Next | BlockEnd::Continue => {}
                    BlockEnd::Break => break,
                    other => return Ok(other),
                }
            }
            return Ok(BlockEnd::Next);
        }
        let over = self.expression(env, iter)?;
        for item in self.unpacked(&over)? {
            self.step(1)?;
            self.assign(env, target, item)?;
            match self.block(env, body)? {
                BlockEnd::Next | BlockEnd::Continue => {}
                BlockEnd::Break => break,
                other => return Ok(other),
            }
        }
        Ok(BlockEnd::Next)
    }

    /// A loop whose end depends on data. Variables that it assigns are carried as tensors; `at` is the condition, or with `trips`
    /// the loop's variable.
    fn data_loop(&mut self, env: &mut Env, at: &Ast, body: &[Stmt], trips: Option<Expr>) -> Result<()> {
        // A first run of the body, which is thrown away, tells what it assigns.
        let mut names: Vec<Arc<str>> = Vec::new();
        assigned(body, &mut names);
        names.retain(|n| env.vars.contains_key(n));
        if trips.is_none() {
            // A condition variable is one of them.
            if let AstKind::Name(n) = &at.kind
                && !names.contains(n)
            {
                return Err(Error::unsupported("a loop on data whose condition it never changes"));
            }
        }
        let mut carried: Vec<(Arc<str>, CarriedKind)> = Vec::new();
        let mut initial: Vec<TensorRef> = Vec::new();
        for name in names {
            let value = env.vars[&name].clone();
            let (kind, tensor) = match &value {
                PyValue::Tensor(t) => (CarriedKind::Tensor, t.clone()),
                PyValue::Num(e) => {
                    let dtype = super::numbers::dtype_of(e);
                    (CarriedKind::Number, self.rec.scalar_tensor(e, dtype)?)
                }
                other => {
                    return Err(Error::unsupported(format!(
                        "a loop whose end depends on data assigns {name}, which is {}",
                        other.kind()
                    )));
                }
            };
            carried.push((name, kind));
            initial.push(tensor);
        }
        let counter = trips.is_some();
        if counter {
            initial.push(self.rec.scalar_tensor(&Expr::Int(0), DType::I64)?);
        }
        // The condition.
        self.rec.enter("while_loop_cond_graph")?;
        let inputs: Vec<TensorRef> = initial.iter().map(|t| self.rec.carried(t)).collect();
        let flag = match &trips {
            Some(trips) => {
                let n = self.rec.scalar_tensor(trips, DType::I64)?;
                let i = inputs.last().expect("the counter was added").clone();
                self.rec.tensor("aten.lt.Tensor", vec![Arg::Value(i), Arg::Value(n)])
            }
            None => {
                let mut inside = self.inside(env, &carried, &inputs, false)?;
                let value = self.expression(&mut inside, at)?;
                match self.truth(value)? {
                    Truth::Known(b) => self.rec.condition_tensor(&Expr::Bool(b)),
                    Truth::Number(e) => self.rec.condition_tensor(&e),
                    Truth::Data(t) => Ok(t),
                }
            }
        };
        let condition = self.rec.leave();
        let flag = flag?;
        // The body.
        self.rec.enter("while_loop_body_graph")?;
        let inputs: Vec<TensorRef> = initial.iter().map(|t| self.rec.carried(t)).collect();
        let outcome = self.loop_body(env, at, body, &carried, &inputs, counter);
        let left = self.rec.leave();
        let outputs = outcome?;
        let results = self.rec.while_loop((condition, flag), (left, outputs), &initial)?;
        for ((name, kind), t) in carried.iter().zip(&results) {
            let value = match kind {
                CarriedKind::Tensor => PyValue::Tensor(t.clone()),
                CarriedKind::Number => PyValue::Num(self.rec.item(t)?),
            };
            env.vars.insert(name.clone(), value);
        }
        Ok(())
    }

    fn inside(
        &mut self,
        env: &Env,
        carried: &[(Arc<str>, CarriedKind)],
        inputs: &[TensorRef],
        numbers: bool,
    ) -> Result<Env> {
        let mut inside = Env { vars: env.vars.clone(), source: env.source.clone() };
        for ((name, kind), t) in carried.iter().zip(inputs) {
            let value = match kind {
                CarriedKind::Tensor => PyValue::Tensor(t.clone()),
                CarriedKind::Number if numbers => PyValue::Num(self.rec.item(t)?),
                // A condition on a number is one on its tensor.
                CarriedKind::Number => PyValue::Tensor(t.clone()),
            };
            inside.vars.insert(name.clone(), value);
        }
        Ok(inside)
    }

    fn loop_body(
        &mut self,
        env: &Env,
        at: &Ast,
        body: &[Stmt],
        carried: &[(Arc<str>, CarriedKind)],
        inputs: &[TensorRef],
        counter: bool,
    ) -> Result<Vec<TensorRef>> {
        let mut inside = self.inside(env, carried, inputs, true)?;
        let last = inputs.last().cloned();
        if let (true, Some(i)) = (counter, &last) {
            let n = self.rec.item(i)?;
            self.assign(&mut inside, at, PyValue::Num(n))?;
        }
        let (flow, changes) = self.transaction(|e| e.block(&mut inside, body))?;
        if !changes.is_empty() {
            return Err(Error::unsupported(
                "a loop whose end depends on data changes an attribute, a list or a dictionary",
            ));
        }
        match flow {
            BlockEnd::Next | BlockEnd::Continue => {}
            _ => return Err(Error::unsupported("a loop whose end depends on data is left by break, return or raise")),
        }
        let mut out = Vec::new();
        for ((name, kind), input) in carried.iter().zip(inputs) {
            let value = inside.vars.get(name).cloned().unwrap_or(PyValue::None);
            out.push(match (kind, value) {
                (CarriedKind::Tensor, PyValue::Tensor(t)) => t,
                (CarriedKind::Number, PyValue::Num(e)) => self.rec.scalar_tensor(&e, input.dtype())?,
                (CarriedKind::Number, PyValue::Tensor(t)) => t,
                (_, other) => {
                    return Err(Error::unsupported(format!(
                        "a loop whose end depends on data turns {name} into {}",
                        other.kind()
                    )));
                }
            });
        }
        if let (true, Some(i)) = (counter, last) {
            out.push(self.rec.tensor("aten.add.Scalar", vec![Arg::Value(i), Arg::Scalar(Expr::Int(1))])?);
        }
        Ok(out)
    }
}

/// How a carried variable is seen by the code.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CarriedKind {
    Tensor,
    Number,
}

/// Names that statements assign.
pub(super) fn assigned(stmts: &[Stmt], out: &mut Vec<Arc<str>>) {
    use crate::syntax::ast::StmtKind as S;
    fn target(t: &Ast, out: &mut Vec<Arc<str>>) {
        match &t.kind {
            AstKind::Name(n) if !out.contains(n) => out.push(n.clone()),
            AstKind::Tuple(items) => items.iter().for_each(|i| target(i, out)),
            _ => {}
        }
    }
    for stmt in stmts {
        match &stmt.kind {
            S::Assign(targets, _) => targets.iter().for_each(|t| target(t, out)),
            S::Annotated(t, _, Some(_)) | S::Augmented(_, t, _) => target(t, out),
            S::If(_, a, b) => {
                assigned(a, out);
                assigned(b, out);
            }
            S::While(_, body) | S::With(_, body) => assigned(body, out),
            S::For(t, _, body) => {
                target(t, out);
                assigned(body, out);
            }
            _ => {}
        }
    }
}
