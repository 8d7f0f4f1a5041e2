//! A lexer and parser for the subset of Python in which TorchScript serialises code and FX prints graphs.

pub mod ast;
mod expressions;
mod lex;
mod statements;

pub use lex::unescape;

use crate::source::SourceText;
use ast::{Ast, Stmt};
use lex::{PyTok, PyToken};
use restride_ir::Result;
use std::sync::Arc;

/// Deepest nesting of statements and expressions.
const MAX_DEPTH: u32 = 64;
/// Most links of a chain of operators, calls and attributes, each of which nests the tree one deeper.
const MAX_CHAIN: u32 = 200;

/// Parses a source.
///
/// # Errors
/// Syntax that the subset does not have, with its line.
pub fn parse(source: &Arc<SourceText>) -> Result<Vec<Stmt>> {
    let tokens = lex::lex(source)?;
    let mut parser = PyParser { source, tokens, at: 0, depth: 0 };
    let mut out = Vec::new();
    while parser.peek() != PyTok::End {
        if parser.eat(PyTok::Newline) {
            continue;
        }
        parser.statement(&mut out)?;
    }
    Ok(out)
}

/// Parses one expression.
///
/// # Errors
/// As [`parse`].
pub fn parse_expression(source: &Arc<SourceText>) -> Result<Ast> {
    let tokens = lex::lex(source)?;
    let mut parser = PyParser { source, tokens, at: 0, depth: 0 };
    let out = parser.tuple_expression()?;
    while parser.eat(PyTok::Newline) {}
    match parser.peek() {
        PyTok::End => Ok(out),
        _ => Err(parser.unexpected("the end")),
    }
}

pub(crate) struct PyParser<'s> {
    source: &'s Arc<SourceText>,
    tokens: Vec<PyToken>,
    at: usize,
    depth: u32,
}

impl<'s> PyParser<'s> {
    fn token(&self) -> &PyToken {
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn peek(&self) -> PyTok {
        self.token().tok
    }

    fn text(&self) -> &'s str {
        let t = self.token();
        &self.source.text()[t.start..t.end]
    }

    fn line(&self) -> u32 {
        self.token().line
    }

    fn next(&mut self) {
        self.at += 1;
    }

    fn eat(&mut self, tok: PyTok) -> bool {
        let found = self.peek() == tok;
        if found {
            self.next();
        }
        found
    }

    fn is_op(&self, op: &str) -> bool {
        self.peek() == PyTok::Op && self.text() == op
    }

    fn eat_op(&mut self, op: &str) -> bool {
        let found = self.is_op(op);
        if found {
            self.next();
        }
        found
    }

    fn is_word(&self, word: &str) -> bool {
        self.peek() == PyTok::Name && self.text() == word
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.next();
        }
        found
    }

    fn expect_op(&mut self, op: &str) -> Result<()> {
        if self.eat_op(op) { Ok(()) } else { Err(self.unexpected(&format!("`{op}`"))) }
    }

    fn name(&mut self) -> Result<Arc<str>> {
        if self.peek() != PyTok::Name {
            return Err(self.unexpected("a name"));
        }
        let name: Arc<str> = self.text().into();
        self.next();
        Ok(name)
    }

    fn unexpected(&self, want: &str) -> restride_ir::Error {
        let found = match self.peek() {
            PyTok::End => "the end of the text".to_string(),
            PyTok::Newline => "the end of the line".into(),
            PyTok::Indent | PyTok::Dedent => "another indentation".into(),
            _ => format!("`{}`", self.text()),
        };
        self.source.error(self.line(), format!("{want} is expected, found {found}"))
    }

    fn deeper<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            return Err(self.source.error(self.line(), format!("nested more than {MAX_DEPTH} deep")));
        }
        self.depth += 1;
        let out = f(self);
        self.depth -= 1;
        out
    }
}

#[cfg(test)]
mod tests;
