//! Higher-order operators of printed graphs, whose bodies are graph modules of the text, and what `torch.export` prints around a graph.

use super::expressions::refused;
use super::{BlockEnd, Env, Evaluator};
use crate::syntax::ast::{Ast, AstKind, Stmt, StmtKind};
use crate::value::{KeywordArgs, PyValue};
use restride_ir::{Arg, Error, Expr, Result};
use std::sync::Arc;

impl Evaluator<'_, '_> {
    /// `fx_pytree.tree_flatten_spec((args, kwargs), spec)` and `pytree.tree_unflatten(leaves, spec)`: the nesting is that of the values,
    /// so that the spec, which the text does not have, is not read. `None` for another function.
    pub(super) fn pytree_call(&mut self, env: &mut Env, name: &str, args: &[(Ast, bool)]) -> Result<Option<PyValue>> {
        let Some((values, _)) = args.first() else { return Ok(None) };
        let flat = match name {
            "fx_pytree.tree_flatten_spec" => true,
            "pytree.tree_unflatten" => false,
            _ => return Ok(None),
        };
        let values = self.expression(env, values)?;
        if !flat {
            return Ok(Some(values));
        }
        let mut out = Vec::new();
        leaves(&values, &mut out);
        Ok(Some(PyValue::tuple(out)))
    }

    /// `torch.ops.higher_order.NAME(...)`.
    pub(super) fn higher_order(&mut self, name: &str, args: &[PyValue], kwargs: &KeywordArgs) -> Result<PyValue> {
        match (name, args) {
            ("cond", [pred, then, other, operands @ ..]) => {
                let operands = operands.first().cloned().unwrap_or(PyValue::tuple(Vec::new()));
                self.cond_call(pred.clone(), then.clone(), other.clone(), operands)
            }
            ("while_loop", [condition, body, carried, more @ ..]) => {
                let more = match more.first() {
                    Some(more) => self.unpacked(more)?,
                    None => Vec::new(),
                };
                let carried = self.unpacked(carried)?;
                self.while_call(condition.clone(), body.clone(), carried, more)
            }
            ("scan", [combine, init, xs, more @ ..]) => {
                let more = match more.first() {
                    Some(more) => self.unpacked(more)?,
                    None => Vec::new(),
                };
                let (init, xs) = (self.unpacked(init)?, self.unpacked(xs)?);
                self.scan_call(combine, init, &xs, &more)
            }
            ("map_impl", [body, xs, more @ ..]) => {
                let more = match more.first() {
                    Some(more) => self.unpacked(more)?,
                    None => Vec::new(),
                };
                let xs = self.unpacked(xs)?;
                self.scan_call(body, Vec::new(), &xs, &more)
            }
            ("wrap_with_set_grad_enabled", [PyValue::Num(Expr::Bool(on)), body, operands @ ..]) => {
                let outer = std::mem::replace(&mut self.rec.no_grad, !on);
                let out = self.call_value(body.clone(), operands.to_vec(), Vec::new());
                self.rec.no_grad = outer;
                out
            }
            // An operator with an effect, behind the token that orders effects.
            ("with_effects", [token, op, operands @ ..]) => {
                let made = self.call_value(op.clone(), operands.to_vec(), kwargs.to_vec())?;
                let mut out = vec![token.clone()];
                match made {
                    PyValue::Tuple(items, _) => out.extend(items.iter().cloned()),
                    one => out.push(one),
                }
                Ok(PyValue::tuple(out))
            }
            ("wrap" | "tag_activation_checkpoint", [body, operands @ ..]) => {
                self.call_value(body.clone(), operands.to_vec(), Vec::new())
            }
            _ => Err(Error::unsupported(format!("torch.ops.higher_order.{name} in a printed graph"))
                .help("save the program with torch.export.save and open the .pt2")),
        }
    }

    /// An environment with a variable for each value.
    fn bodies_env(&self, vars: Vec<(&str, PyValue)>) -> Env {
        let source = match &self.rec.site {
            Some(site) => site.source.clone(),
            None => crate::source::SourceText::new("text", ""),
        };
        let mut env = Env::new(source);
        env.vars = vars.into_iter().map(|(n, v)| (Arc::from(n), v)).collect();
        env
    }

    fn line(&self) -> u32 {
        self.rec.site.as_ref().map_or(1, |s| s.line)
    }

    fn cond_call(&mut self, pred: PyValue, then: PyValue, other: PyValue, operands: PyValue) -> Result<PyValue> {
        let line = self.line();
        let mut env = self.bodies_env(vec![("then", then), ("other", other), ("operands", operands)]);
        let side = |body: &str| {
            let args = vec![(Ast::new(AstKind::Name("operands".into()), line), true)];
            let callee = Box::new(Ast::new(AstKind::Name(body.into()), line));
            let call = Ast::new(AstKind::Call { callee, args, kwargs: Vec::new() }, line);
            vec![Stmt { kind: StmtKind::Return(Some(call)), line }]
        };
        match self.branch(&mut env, pred, &side("then"), &side("other"))? {
            BlockEnd::Return(value) => Ok(value),
            _ => Err(refused("a branch of cond does not return")),
        }
    }

    fn while_call(
        &mut self,
        condition: PyValue,
        body: PyValue,
        carried: Vec<PyValue>,
        more: Vec<PyValue>,
    ) -> Result<PyValue> {
        let line = self.line();
        let names: Vec<String> = (0..carried.len()).map(|i| format!("carried {i}")).collect();
        let mut vars = vec![("condition", condition), ("body", body), ("more", PyValue::tuple(more))];
        vars.extend(names.iter().map(String::as_str).zip(carried));
        let mut env = self.bodies_env(vars);
        let name = |n: &str| Ast::new(AstKind::Name(n.into()), line);
        let call = |f: &str| {
            let mut args: Vec<(Ast, bool)> = names.iter().map(|n| (name(n), false)).collect();
            args.push((name("more"), true));
            Ast::new(AstKind::Call { callee: Box::new(name(f)), args, kwargs: Vec::new() }, line)
        };
        let all = Ast::new(AstKind::Tuple(names.iter().map(|n| name(n)).collect()), line);
        let step = Stmt { kind: StmtKind::Assign(vec![all], call("body")), line };
        self.while_statement(&mut env, &call("condition"), &[step])?;
        Ok(PyValue::tuple(names.iter().map(|n| env.vars[n.as_str()].clone()).collect()))
    }

    /// The body's calls one after another, on slices of `xs` along the first dimension; its results past the carried ones are stacked.
    fn scan_call(
        &mut self,
        body: &PyValue,
        mut carried: Vec<PyValue>,
        xs: &[PyValue],
        more: &[PyValue],
    ) -> Result<PyValue> {
        let Some(PyValue::Tensor(first)) = xs.first() else { return Err(refused("scan over no tensor")) };
        let trips = match self.rec.sizes(first).into_iter().next() {
            Some(n) => self.known_int(&PyValue::Num(n), "the number of iterations")?,
            None => return Err(refused("scan over a 0-d tensor")),
        };
        if trips < 1 {
            return Err(Error::unsupported("scan over a dimension of size 0"));
        }
        let mut rows: Vec<Vec<PyValue>> = Vec::new();
        for i in 0..trips {
            self.step(1)?;
            let mut call = std::mem::take(&mut carried);
            let n = call.len();
            for x in xs {
                let PyValue::Tensor(x) = x else { return Err(refused("scan over something other than tensors")) };
                let args = vec![Arg::Value(x.clone()), Arg::Scalar(Expr::Int(0)), Arg::Scalar(Expr::Int(i))];
                call.push(PyValue::Tensor(self.rec.tensor("aten.select.int", args)?));
            }
            call.extend_from_slice(more);
            let made = self.call_value(body.clone(), call, Vec::new())?;
            let mut made = self.unpacked(&made)?;
            let row = made.split_off(n.min(made.len()));
            carried = made;
            rows.push(row);
        }
        let mut out = carried;
        for k in 0..rows[0].len() {
            let column = rows.iter().map(|r| r.get(k).and_then(PyValue::tensor).cloned()).collect::<Option<Vec<_>>>();
            let column = column.ok_or_else(|| Error::unsupported("a body of scan that returns no tensors"))?;
            let args = vec![Arg::Values(column.into_iter().map(Some).collect())];
            out.push(PyValue::Tensor(self.rec.tensor("aten.stack.default", args)?));
        }
        Ok(PyValue::tuple(out))
    }
}

/// The leaves of nested containers, in PyTorch's order.
fn leaves(value: &PyValue, out: &mut Vec<PyValue>) {
    match value {
        PyValue::List(items) => items.borrow().iter().for_each(|i| leaves(i, out)),
        PyValue::Tuple(items, _) => items.iter().for_each(|i| leaves(i, out)),
        PyValue::Dict(items) => items.borrow().values().for_each(|i| leaves(i, out)),
        leaf => out.push(leaf.clone()),
    }
}
