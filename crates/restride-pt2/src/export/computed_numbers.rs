//! Numbers that arguments need, computed once in the graph from the sizes of its tensors.

use super::graph::{GraphWriter, as_tensor};
use crate::model::{Argument, NamedArgument, NumberArgument};
use restride_ir::{Error, Expr, ExprFn, Result, Symbol};
use std::sync::Arc;

impl GraphWriter<'_> {
    /// The name of a symbolic number, which is computed here unless it has one.
    pub fn number(&mut self, e: &Expr) -> Result<Arc<str>> {
        if let Some(name) = self.numbers.get(e) {
            return Ok(name.clone());
        }
        if let Some((_, tensor, dim)) = self.sizes.iter().find(|(have, _, _)| have == e).cloned() {
            return self.size(e, &tensor, dim);
        }
        match e {
            Expr::Sym(s) => self.solve(s),
            Expr::Call(c) => match (c.0, c.1.as_slice()) {
                (ExprFn::ModularIndexing, [a, b, m]) => {
                    let quotient = self.python(ExprFn::FloorDiv, &[a.clone(), b.clone()])?;
                    self.compute("_operator.mod", e, &[NumberArg::Name(quotient), NumberArg::Expr(m.clone())])
                }
                (ExprFn::Abs, [a]) => {
                    let negative = a_times(a, -1);
                    self.compute("torch.sym_max", e, &[NumberArg::Expr(a.clone()), NumberArg::Expr(negative)])
                }
                (f, args) => self.python(f, args),
            },
            _ => Err(Error::invalid(format!("{e} is a constant"))),
        }
    }

    fn size(&mut self, e: &Expr, tensor: &str, dim: usize) -> Result<Arc<str>> {
        let name = self.fresh("sym_size_int");
        let output = self.declare_number(&name, e)?;
        let inputs = vec![
            NamedArgument::positional("self", as_tensor(tensor)),
            NamedArgument::positional("dim", Argument::AsInt(dim as i64)),
        ];
        self.push("torch.ops.aten.sym_size.int".into(), inputs, vec![output], false);
        Ok(name)
    }

    /// Solves a size of the form `a * symbol + b` for the symbol.
    fn solve(&mut self, s: &Symbol) -> Result<Arc<str>> {
        let at = |e: &Expr, n: i64| match e.replace(&[(s.clone(), Expr::Int(n))].into()) {
            Expr::Int(i) => Some(i),
            _ => None,
        };
        let linear = |e: &Expr| {
            let (b, a) = (at(e, 0)?, at(e, 1)? - at(e, 0)?);
            let again = Expr::call(ExprFn::Add, vec![a_times(&Expr::Sym(s.clone()), a), Expr::Int(b)]);
            (a != 0 && again == *e).then_some((a, b))
        };
        let found = self.sizes.iter().find_map(|(e, t, d)| Some((e.clone(), t.clone(), *d, linear(e)?)));
        let Some((e, tensor, dim, (a, b))) = found else {
            let flag = Expr::call(ExprFn::Eq, vec![Expr::Sym(s.clone()), Expr::Int(1)]);
            if self.numbers.contains_key(&flag) {
                // A truth value from data is known by its number, which the bodies of control flow take.
                let choice = [flag, Expr::Int(1), Expr::Int(0)].map(NumberArg::Expr);
                return self.compute("torch.sym_ite", &Expr::Sym(s.clone()), &choice);
            }
            if let Some(name) = self.ask(s)? {
                return Ok(name);
            }
            return Err(Error::unsupported(format!(
                "the number {} is needed where no tensor has it as a size",
                s.name()
            )));
        };
        let mut name = self.size(&e, &tensor, dim)?;
        if b != 0 {
            let less = a_times(&Expr::Sym(s.clone()), a);
            name = self.compute("_operator.sub", &less, &[NumberArg::Name(name), NumberArg::Expr(Expr::Int(b))])?;
        }
        if a != 1 {
            let whole = Expr::Sym(s.clone());
            name =
                self.compute("_operator.floordiv", &whole, &[NumberArg::Name(name), NumberArg::Expr(Expr::Int(a))])?;
        }
        Ok(name)
    }

    fn python(&mut self, f: ExprFn, args: &[Expr]) -> Result<Arc<str>> {
        let whole = Expr::call(f, args.to_vec());
        if let Some(name) = self.numbers.get(&whole) {
            return Ok(name.clone());
        }
        let Some(target) = crate::expressions::python(f) else {
            return Err(Error::unsupported(format!(
                "{whole} cannot be computed in an archive: it has no {}",
                f.name()
            )));
        };
        let many = matches!(f, ExprFn::Add | ExprFn::Mul | ExprFn::Min | ExprFn::Max | ExprFn::And | ExprFn::Or);
        if !many || args.len() <= 2 {
            let args: Vec<_> = args.iter().cloned().map(NumberArg::Expr).collect();
            return self.compute(target, &whole, &args);
        }
        // Python's operators take two arguments.
        let (last, rest) = args.split_last().expect("there are more than two");
        let left = self.python(f, rest)?;
        self.compute(target, &whole, &[NumberArg::Name(left), NumberArg::Expr(last.clone())])
    }

    fn compute(&mut self, target: &str, result: &Expr, args: &[NumberArg]) -> Result<Arc<str>> {
        let mut inputs = Vec::new();
        let known = restride_ops::lookup(target);
        for (i, arg) in args.iter().enumerate() {
            let name = known.and_then(|op| op.schema().args.get(i)).map_or("a", |a| &a.name);
            let arg = match arg {
                NumberArg::Name(n) => Argument::AsSymInt(NumberArgument::AsName(n.to_string())),
                NumberArg::Expr(e) => self.scalar(e, None)?,
            };
            inputs.push(NamedArgument::positional(name, arg));
        }
        let hint = target.rsplit('.').next().unwrap_or("number").trim_matches('_');
        let name = self.fresh(hint);
        let output = self.declare_number(&name, result)?;
        self.push(target.into(), inputs, vec![output], false);
        Ok(name)
    }
}

fn a_times(e: &Expr, a: i64) -> Expr {
    Expr::call(ExprFn::Mul, vec![Expr::Int(a), e.clone()])
}

/// An argument of a function of numbers.
enum NumberArg {
    Name(Arc<str>),
    Expr(Expr),
}
