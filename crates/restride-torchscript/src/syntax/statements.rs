//! Statements.

use super::PyParser;
use super::ast::{Ast, ClassDef, FunctionDef, Param, Stmt, StmtKind};
use super::lex::PyTok;
use restride_ir::Result;
use std::rc::Rc;

const AUGMENTED: [(&str, &str); 11] = [
    ("+=", "iadd"),
    ("-=", "isub"),
    ("*=", "imul"),
    ("/=", "itruediv"),
    ("//=", "ifloordiv"),
    ("%=", "imod"),
    ("**=", "ipow"),
    ("&=", "iand"),
    ("|=", "ior"),
    ("^=", "ixor"),
    ("@=", "imatmul"),
];

impl PyParser<'_> {
    /// One statement, or several on one line.
    pub(super) fn statement(&mut self, out: &mut Vec<Stmt>) -> Result<()> {
        let line = self.line();
        let word = if self.peek() == PyTok::Name { self.text() } else { "" };
        let compound = match word {
            "if" => Some(self.deeper(Self::if_statement)?),
            "while" => {
                self.next();
                let condition = self.expression()?;
                Some(StmtKind::While(condition, self.block()?))
            }
            "for" => {
                self.next();
                let target = self.for_target()?;
                if !self.eat_word("in") {
                    return Err(self.unexpected("`in`"));
                }
                let iter = self.tuple_expression()?;
                Some(StmtKind::For(target, iter, self.block()?))
            }
            "with" => {
                self.next();
                let mut items = Vec::new();
                loop {
                    let value = self.expression()?;
                    let target = if self.eat_word("as") { Some(self.expression()?) } else { None };
                    items.push((value, target));
                    if !self.eat_op(",") {
                        break;
                    }
                }
                Some(StmtKind::With(items, self.block()?))
            }
            "def" => Some(StmtKind::Def(Rc::new(self.function()?))),
            "class" => Some(StmtKind::Class(Rc::new(self.class()?))),
            _ => None,
        };
        if let Some(kind) = compound {
            out.push(Stmt { kind, line });
            return Ok(());
        }
        if self.eat_op("@") {
            // A decorator says nothing that a run needs.
            self.expression()?;
            self.eat(PyTok::Newline);
            return Ok(());
        }
        loop {
            let line = self.line();
            let kind = self.simple_statement()?;
            out.push(Stmt { kind, line });
            if self.eat_op(";") {
                if self.eat(PyTok::Newline) {
                    return Ok(());
                }
                continue;
            }
            if !self.eat(PyTok::Newline) && self.peek() != PyTok::End {
                return Err(self.unexpected("the end of the line"));
            }
            return Ok(());
        }
    }

    fn for_target(&mut self) -> Result<Ast> {
        let line = self.line();
        let first = Ast::new(super::ast::AstKind::Name(self.name()?), line);
        if !self.is_op(",") {
            return Ok(first);
        }
        let mut items = vec![first];
        while self.eat_op(",") {
            items.push(Ast::new(super::ast::AstKind::Name(self.name()?), line));
        }
        Ok(Ast::new(super::ast::AstKind::Tuple(items), line))
    }

    fn simple_statement(&mut self) -> Result<StmtKind> {
        let word = if self.peek() == PyTok::Name { self.text() } else { "" };
        match word {
            "pass" => {
                self.next();
                Ok(StmtKind::Pass)
            }
            "break" => {
                self.next();
                Ok(StmtKind::Break)
            }
            "continue" => {
                self.next();
                Ok(StmtKind::Continue)
            }
            "import" | "from" | "del" | "global" | "nonlocal" => {
                while !matches!(self.peek(), PyTok::Newline | PyTok::End) && !self.is_op(";") {
                    self.next();
                }
                Ok(StmtKind::Pass)
            }
            "return" => {
                self.next();
                let ends = matches!(self.peek(), PyTok::Newline | PyTok::End | PyTok::Dedent) || self.is_op(";");
                Ok(StmtKind::Return(if ends { None } else { Some(self.tuple_expression()?) }))
            }
            "assert" => {
                self.next();
                let condition = self.expression()?;
                let message = if self.eat_op(",") { Some(self.expression()?) } else { None };
                Ok(StmtKind::Assert(condition, message))
            }
            "raise" => {
                self.next();
                let ends = matches!(self.peek(), PyTok::Newline | PyTok::End);
                Ok(StmtKind::Raise(if ends { None } else { Some(self.expression()?) }))
            }
            _ => self.assignment(),
        }
    }

    fn assignment(&mut self) -> Result<StmtKind> {
        let first = self.tuple_expression()?;
        if self.eat_op(":") {
            let annotation = self.expression()?;
            let value = if self.eat_op("=") { Some(self.tuple_expression()?) } else { None };
            return Ok(StmtKind::Annotated(first, annotation, value));
        }
        if let Some((_, name)) = AUGMENTED.iter().find(|(op, _)| self.is_op(op)) {
            self.next();
            let value = self.tuple_expression()?;
            return Ok(StmtKind::Augmented(name, first, value));
        }
        if !self.is_op("=") {
            return Ok(StmtKind::Expr(first));
        }
        let mut all = vec![first];
        while self.eat_op("=") {
            all.push(self.tuple_expression()?);
        }
        let value = all.pop().expect("one was pushed");
        Ok(StmtKind::Assign(all, value))
    }

    fn if_statement(&mut self) -> Result<StmtKind> {
        self.next();
        let condition = self.expression()?;
        let then = self.block()?;
        let line = self.line();
        let other = if self.is_word("elif") {
            let nested = self.deeper(Self::if_statement)?;
            vec![Stmt { kind: nested, line }]
        } else if self.eat_word("else") {
            self.block()?
        } else {
            Vec::new()
        };
        Ok(StmtKind::If(condition, then, other))
    }

    /// The statements after a colon.
    pub(super) fn block(&mut self) -> Result<Vec<Stmt>> {
        self.expect_op(":")?;
        let mut out = Vec::new();
        if !self.eat(PyTok::Newline) {
            self.statement(&mut out)?;
            return Ok(out);
        }
        if !self.eat(PyTok::Indent) {
            return Ok(out);
        }
        self.deeper(|p| {
            while !p.eat(PyTok::Dedent) {
                if p.peek() == PyTok::End {
                    break;
                }
                if p.eat(PyTok::Newline) {
                    continue;
                }
                if p.peek() == PyTok::Indent {
                    return Err(p.unexpected("a statement"));
                }
                p.statement(&mut out)?;
            }
            Ok(())
        })?;
        Ok(out)
    }

    fn function(&mut self) -> Result<FunctionDef> {
        let line = self.line();
        self.next();
        let name = self.name()?;
        self.expect_op("(")?;
        let (mut params, mut keyword_only) = (Vec::new(), usize::MAX);
        while !self.is_op(")") {
            let stars = if self.eat_op("**") { 2 } else { u8::from(self.eat_op("*")) };
            if stars == 1 && self.eat_op(",") {
                keyword_only = params.len();
                continue;
            }
            if self.eat_op("/") {
                self.eat_op(",");
                continue;
            }
            let name = self.name()?;
            let annotation = if self.eat_op(":") { Some(self.expression()?) } else { None };
            let default = if self.eat_op("=") { Some(self.expression()?) } else { None };
            params.push(Param { name, annotation, default, stars });
            if !self.eat_op(",") {
                break;
            }
        }
        self.expect_op(")")?;
        let returns = if self.eat_op("->") { Some(self.expression()?) } else { None };
        let body = self.block()?;
        let keyword_only = keyword_only.min(params.len());
        Ok(FunctionDef { name, params, keyword_only, returns, body, line })
    }

    fn class(&mut self) -> Result<ClassDef> {
        let line = self.line();
        self.next();
        let name = self.name()?;
        let mut base = None;
        if self.eat_op("(") {
            while !self.is_op(")") {
                let of = self.expression()?;
                base = base.or(of.dotted().map(|d| d.into()));
                if !self.eat_op(",") {
                    break;
                }
            }
            self.expect_op(")")?;
        }
        let body = self.block()?;
        Ok(ClassDef { name, base, body, line })
    }
}
