//! Symbolic expressions and guards: text in a small part of Python's grammar, parsed straight into [`Expr`].
//!
//! PyTorch writes sympy's `srepr` in types (`Add(Symbol('s0', integer=True), Integer(1))`), sympy's `str` as keys of range
//! constraints (`2*s0 + 1`), and Python conditions over the inputs as guards (`L['x'].size()[0] % 2 == 0`). One grammar and
//! one table of functions read all three; [`ExprNames`] says what a name stands for.

mod functions;
mod lexer;
mod parser;
mod print;

pub use functions::{python, python_function};
pub use parser::parse;
pub use print::{compared, python_text, srepr};

use crate::pytree::PathStep;
use restride_ir::{Expr, Symbol};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Deepest expression that is built; also bounds the recursion of code that walks it.
pub const MAX_DEPTH: usize = 100;

/// A property of an input that a guard asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputProperty {
    /// The input itself, a number or a truth value.
    Value,
    /// Size of a dimension; negative dimensions count from the end.
    Size(i64),
    /// Number of dimensions.
    Rank,
    /// Number of elements.
    Numel,
}

/// Meaning of the names in an expression.
pub trait ExprNames {
    /// The symbol of this name, which the text declares positive or does not.
    fn symbol(&self, name: &str, positive: bool) -> Option<Expr>;

    /// A property of the input at `path` below `L`; the first step is a parameter of `forward`.
    fn input(&self, path: &[PathStep], property: InputProperty) -> Option<Expr> {
        let _ = (path, property);
        None
    }
}

/// A name outside the table is a symbol without a range.
impl ExprNames for BTreeMap<Arc<str>, Symbol> {
    fn symbol(&self, name: &str, _positive: bool) -> Option<Expr> {
        let known = self.get(name).cloned();
        Some(Expr::Sym(known.unwrap_or_else(|| Symbol::new(name, None, None))))
    }
}

#[cfg(test)]
mod tests;
