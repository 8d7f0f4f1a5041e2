//! Several expressions as a table in which equal parts stand once, to evaluate them at many bindings.

use super::function::apply;
use super::{Expr, ExprFn};
use crate::{Binding, Scalar, Symbol};
use foldhash::{HashMap, HashMapExt};
use smallvec::SmallVec;

/// A part of an expression; arguments are numbers of parts in front of it.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Part {
    /// A symbol, or a number.
    Leaf(Expr),
    Call(ExprFn, SmallVec<[u32; 4]>),
}

/// The parts of some expressions.
pub(crate) struct ExprTable {
    parts: Vec<Part>,
    /// Whether a part is one of the expressions.
    whole: Vec<bool>,
}

impl ExprTable {
    pub fn new<'a>(expressions: impl Iterator<Item = &'a Expr>) -> ExprTable {
        let mut table = ExprTable { parts: Vec::new(), whole: Vec::new() };
        let mut known: HashMap<Part, u32> = HashMap::new();
        for e in expressions {
            let at = table.add(e, &mut known);
            table.whole[at as usize] = true;
        }
        table
    }

    fn add(&mut self, e: &Expr, known: &mut HashMap<Part, u32>) -> u32 {
        let part = match e {
            Expr::Call(c) => Part::Call(c.0, c.1.iter().map(|a| self.add(a, known)).collect()),
            leaf => Part::Leaf(leaf.clone()),
        };
        *known.entry(part).or_insert_with_key(|part| {
            self.parts.push(part.clone());
            self.whole.push(false);
            (self.parts.len() - 1) as u32
        })
    }

    /// The values of all parts.
    pub fn values(&self, binding: &Binding) -> Vec<Option<Scalar>> {
        let mut out = vec![None; self.parts.len()];
        let all: Vec<u32> = (0..self.parts.len() as u32).collect();
        self.refresh(&all, binding, &mut out);
        out
    }

    /// Parts that depend on one of these symbols, in order.
    pub fn dependents(&self, symbols: &[&Symbol]) -> Vec<u32> {
        let mut depends = vec![false; self.parts.len()];
        for at in 0..self.parts.len() {
            depends[at] = match &self.parts[at] {
                Part::Leaf(e) => matches!(e, Expr::Sym(s) if symbols.contains(&s)),
                Part::Call(_, args) => args.iter().any(|a| depends[*a as usize]),
            };
        }
        (0..self.parts.len() as u32).filter(|at| depends[*at as usize]).collect()
    }

    /// Computes the values of some parts anew, which are in order.
    pub fn refresh(&self, parts: &[u32], binding: &Binding, values: &mut [Option<Scalar>]) {
        for &at in parts {
            values[at as usize] = match &self.parts[at as usize] {
                Part::Leaf(Expr::Sym(s)) => binding.get(s).copied(),
                Part::Leaf(number) => number.constant(),
                Part::Call(f, args) => {
                    let args: Option<SmallVec<[Scalar; 4]>> = args.iter().map(|a| values[*a as usize]).collect();
                    args.and_then(|args| apply(*f, &args))
                }
            };
        }
    }

    /// How many of the expressions among these parts are not true.
    pub fn failures(&self, parts: &[u32], values: &[Option<Scalar>]) -> usize {
        let fails = |at: usize| self.whole[at] && !values[at].is_some_and(Scalar::as_bool);
        parts.iter().filter(|at| fails(**at as usize)).count()
    }
}
