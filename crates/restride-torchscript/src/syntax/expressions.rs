//! Expressions, by precedence.

use super::ast::{Ast, AstKind};
use super::lex::{PyTok, unescape};
use super::{MAX_CHAIN, PyParser};
use restride_ir::Result;

/// Binary operators by falling precedence, with the names of Python's `operator` functions.
const LEVELS: [&[(&str, &str)]; 6] = [
    &[("|", "or_")],
    &[("^", "xor")],
    &[("&", "and_")],
    &[("<<", "lshift"), (">>", "rshift")],
    &[("+", "add"), ("-", "sub")],
    &[("*", "mul"), ("//", "floordiv"), ("/", "truediv"), ("%", "mod"), ("@", "matmul")],
];
const COMPARISONS: [(&str, &str); 6] =
    [("==", "eq"), ("!=", "ne"), ("<=", "le"), (">=", "ge"), ("<", "lt"), (">", "gt")];

impl PyParser<'_> {
    /// An expression, or several separated by commas as a tuple.
    pub(super) fn tuple_expression(&mut self) -> Result<Ast> {
        let line = self.line();
        let first = self.starred_or_expression()?;
        if !self.is_op(",") {
            return Ok(first);
        }
        let mut items = vec![first];
        while self.eat_op(",") {
            if self.ends_tuple() {
                break;
            }
            items.push(self.starred_or_expression()?);
        }
        Ok(Ast::new(AstKind::Tuple(items), line))
    }

    fn ends_tuple(&self) -> bool {
        match self.peek() {
            PyTok::Newline | PyTok::End | PyTok::Dedent => true,
            PyTok::Op => matches!(self.text(), "=" | ")" | "]" | "}" | ":" | ";"),
            _ => false,
        }
    }

    fn starred_or_expression(&mut self) -> Result<Ast> {
        self.expression()
    }

    /// One expression.
    pub(super) fn expression(&mut self) -> Result<Ast> {
        self.deeper(|p| {
            let line = p.line();
            let value = p.disjunction()?;
            if !p.eat_word("if") {
                return Ok(value);
            }
            let condition = p.disjunction()?;
            if !p.eat_word("else") {
                return Err(p.unexpected("`else`"));
            }
            let other = p.expression()?;
            Ok(Ast::new(AstKind::Choice(Box::new(value), Box::new(condition), Box::new(other)), line))
        })
    }

    fn disjunction(&mut self) -> Result<Ast> {
        self.logic("or", |p| p.logic("and", Self::inversion))
    }

    fn logic(&mut self, word: &str, inner: impl Fn(&mut Self) -> Result<Ast>) -> Result<Ast> {
        let mut left = inner(self)?;
        let mut links = 0;
        while self.is_word(word) {
            let line = self.line();
            links += 1;
            self.bounded(links)?;
            self.next();
            let right = Box::new(inner(self)?);
            left = Ast::new(AstKind::Logic { and: word == "and", left: Box::new(left), right }, line);
        }
        Ok(left)
    }

    fn inversion(&mut self) -> Result<Ast> {
        let line = self.line();
        if self.eat_word("not") {
            let of = self.deeper(Self::inversion)?;
            return Ok(Ast::new(AstKind::Unary("not_", Box::new(of)), line));
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<Ast> {
        let mut left = self.binary(0)?;
        let mut links = 0;
        loop {
            let line = self.line();
            links += 1;
            self.bounded(links)?;
            let name = match COMPARISONS.iter().find(|(op, _)| self.is_op(op)) {
                Some((_, name)) => {
                    self.next();
                    *name
                }
                None if self.eat_word("is") => {
                    if self.eat_word("not") {
                        "is_not"
                    } else {
                        "is_"
                    }
                }
                None if self.eat_word("in") => "in",
                None if self.is_word("not") => {
                    self.next();
                    if !self.eat_word("in") {
                        return Err(self.unexpected("`in`"));
                    }
                    "not_in"
                }
                None => return Ok(left),
            };
            let right = self.binary(0)?;
            left = Ast::new(AstKind::Binary(name, Box::new(left), Box::new(right)), line);
        }
    }

    fn binary(&mut self, level: usize) -> Result<Ast> {
        let Some(ops) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        let mut links = 0;
        while let Some((_, name)) = ops.iter().find(|(op, _)| self.is_op(op)) {
            let line = self.line();
            links += 1;
            self.bounded(links)?;
            self.next();
            let right = self.binary(level + 1)?;
            left = Ast::new(AstKind::Binary(name, Box::new(left), Box::new(right)), line);
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Ast> {
        let line = self.line();
        for (op, name) in [("-", "neg"), ("+", "pos"), ("~", "invert")] {
            if self.eat_op(op) {
                let of = self.deeper(Self::unary)?;
                return Ok(match (op, of.kind) {
                    ("-", AstKind::Int(i)) => Ast::new(AstKind::Int(i.wrapping_neg()), line),
                    ("-", AstKind::Float(x)) => Ast::new(AstKind::Float(-x), line),
                    (_, kind) => Ast::new(AstKind::Unary(name, Box::new(Ast::new(kind, line))), line),
                });
            }
        }
        let base = self.postfix()?;
        if self.eat_op("**") {
            let right = self.deeper(Self::unary)?;
            return Ok(Ast::new(AstKind::Binary("pow", Box::new(base), Box::new(right)), line));
        }
        Ok(base)
    }

    /// Refuses chains that nest the tree too deep.
    fn bounded(&self, links: u32) -> Result<()> {
        if links <= MAX_CHAIN {
            return Ok(());
        }
        Err(self.source.error(self.line(), format!("a chain of more than {MAX_CHAIN} operators, calls or attributes")))
    }

    fn postfix(&mut self) -> Result<Ast> {
        let mut out = self.atom()?;
        let mut links = 0;
        loop {
            let line = self.line();
            // Each link nests the tree one deeper.
            links += 1;
            self.bounded(links)?;
            if self.eat_op(".") {
                let name = self.name()?;
                out = Ast::new(AstKind::Attr(Box::new(out), name), line);
            } else if self.eat_op("(") {
                out = self.call(out)?;
            } else if self.eat_op("[") {
                let index = self.deeper(Self::subscript)?;
                self.expect_op("]")?;
                out = Ast::new(AstKind::Index(Box::new(out), Box::new(index)), line);
            } else {
                return Ok(out);
            }
        }
    }

    fn call(&mut self, callee: Ast) -> Result<Ast> {
        let line = callee.line;
        let (mut args, mut kwargs) = (Vec::new(), Vec::new());
        while !self.is_op(")") {
            if self.eat_op("**") {
                let of = self.expression()?;
                kwargs.push(("**".into(), of));
            } else {
                let star = self.eat_op("*");
                let value = self.expression()?;
                match (&value.kind, self.is_op("=")) {
                    (AstKind::Name(name), true) => {
                        let name = name.clone();
                        self.next();
                        kwargs.push((name, self.expression()?));
                    }
                    _ if self.is_word("for") => {
                        let value = self.comprehension(value)?;
                        args.push((value, star));
                    }
                    _ => args.push((value, star)),
                }
            }
            if !self.eat_op(",") {
                break;
            }
        }
        self.expect_op(")")?;
        Ok(Ast::new(AstKind::Call { callee: Box::new(callee), args, kwargs }, line))
    }

    fn subscript(&mut self) -> Result<Ast> {
        let line = self.line();
        let first = self.index_item()?;
        if !self.is_op(",") {
            return Ok(first);
        }
        let mut items = vec![first];
        while self.eat_op(",") {
            if self.is_op("]") {
                break;
            }
            items.push(self.index_item()?);
        }
        Ok(Ast::new(AstKind::Tuple(items), line))
    }

    fn index_item(&mut self) -> Result<Ast> {
        let line = self.line();
        let ends = |p: &Self| p.is_op(":") || p.is_op(",") || p.is_op("]");
        let mut parts: [Option<Box<Ast>>; 3] = [None, None, None];
        if !ends(self) {
            let value = self.expression()?;
            if !self.is_op(":") {
                return Ok(value);
            }
            parts[0] = Some(Box::new(value));
        }
        for part in parts.iter_mut().skip(1) {
            if !self.eat_op(":") {
                break;
            }
            if !ends(self) {
                *part = Some(Box::new(self.expression()?));
            }
        }
        let [a, b, c] = parts;
        Ok(Ast::new(AstKind::Slice(a, b, c), line))
    }

    fn comprehension(&mut self, body: Ast) -> Result<Ast> {
        let line = body.line;
        self.next();
        let mut targets = vec![self.postfix()?];
        let many = self.is_op(",");
        while self.eat_op(",") {
            targets.push(self.postfix()?);
        }
        let target = if many { Ast::new(AstKind::Tuple(targets), line) } else { targets.remove(0) };
        if !self.eat_word("in") {
            return Err(self.unexpected("`in`"));
        }
        let iter = self.disjunction()?;
        let condition = if self.eat_word("if") { Some(Box::new(self.disjunction()?)) } else { None };
        Ok(Ast::new(AstKind::Comprehension(Box::new(body), Box::new(target), Box::new(iter), condition), line))
    }

    fn atom(&mut self) -> Result<Ast> {
        let line = self.line();
        let text = self.text();
        let bad = |p: &Self, what: &str| p.source.error(line, format!("{what} `{text}`"));
        let kind = match self.peek() {
            PyTok::Name => {
                self.next();
                match text {
                    "None" => AstKind::None,
                    "True" => AstKind::Bool(true),
                    "False" => AstKind::Bool(false),
                    _ => AstKind::Name(text.into()),
                }
            }
            PyTok::Int => {
                let digits = text.replace('_', "");
                let parsed = match digits.get(..2) {
                    Some("0x") => i64::from_str_radix(&digits[2..], 16).ok(),
                    Some("0b") => i64::from_str_radix(&digits[2..], 2).ok(),
                    Some("0o") => i64::from_str_radix(&digits[2..], 8).ok(),
                    // The least integer is a negated number that does not fit.
                    _ => digits.parse::<i64>().ok().or((digits == "9223372036854775808").then_some(i64::MIN)),
                };
                let n = parsed.ok_or_else(|| bad(self, "no integer of 64 bits:"))?;
                self.next();
                AstKind::Int(n)
            }
            PyTok::Float => {
                let x = text.replace('_', "").parse().map_err(|_| bad(self, "no number:"))?;
                self.next();
                AstKind::Float(x)
            }
            PyTok::Imaginary => {
                let x = text.trim_end_matches('j').parse().map_err(|_| bad(self, "no number:"))?;
                self.next();
                AstKind::Imaginary(x)
            }
            PyTok::Str => {
                let mut all = String::new();
                while self.peek() == PyTok::Str {
                    all.push_str(&unescape(self.text()).ok_or_else(|| bad(self, "no string:"))?);
                    self.next();
                }
                AstKind::Str(all.into())
            }
            PyTok::Op if text == "..." => {
                self.next();
                AstKind::Ellipsis
            }
            PyTok::Op if text == "(" => return self.deeper(Self::parenthesis),
            PyTok::Op if text == "[" => return self.deeper(Self::list),
            PyTok::Op if text == "{" => return self.deeper(Self::dict),
            _ => return Err(self.unexpected("a value")),
        };
        Ok(Ast::new(kind, line))
    }

    fn parenthesis(&mut self) -> Result<Ast> {
        let line = self.line();
        self.next();
        if self.eat_op(")") {
            return Ok(Ast::new(AstKind::Tuple(Vec::new()), line));
        }
        let inner = self.tuple_expression()?;
        self.expect_op(")")?;
        Ok(inner)
    }

    fn list(&mut self) -> Result<Ast> {
        let line = self.line();
        self.next();
        let mut items = Vec::new();
        while !self.is_op("]") {
            let item = self.expression()?;
            if items.is_empty() && self.is_word("for") {
                let out = self.comprehension(item)?;
                self.expect_op("]")?;
                return Ok(out);
            }
            items.push(item);
            if !self.eat_op(",") {
                break;
            }
        }
        self.expect_op("]")?;
        Ok(Ast::new(AstKind::List(items), line))
    }

    fn dict(&mut self) -> Result<Ast> {
        let line = self.line();
        self.next();
        let mut items = Vec::new();
        while !self.is_op("}") {
            let key = self.expression()?;
            self.expect_op(":")?;
            items.push((key, self.expression()?));
            if !self.eat_op(",") {
                break;
            }
        }
        self.expect_op("}")?;
        Ok(Ast::new(AstKind::Dict(items), line))
    }
}
