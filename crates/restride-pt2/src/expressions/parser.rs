//! The parser: precedence climbing over Python's operators.

use super::functions::named;
use super::lexer::{ExprToken, tokenize};
use super::{ExprNames, InputProperty, MAX_DEPTH};
use crate::error::{Pt2Error, Result};
use crate::pytree::PathStep;
use restride_ir::{Dim, Expr, ExprFn};

/// Parses a whole expression.
///
/// # Errors
/// Text outside the grammar, an unknown name or function, an expression nested too deep; with the text and the column.
pub fn parse(text: &str, names: &dyn ExprNames) -> Result<Expr> {
    let place = |at: usize| {
        let mut short: String = text.chars().take(80).collect();
        if short.len() < text.len() {
            short.push('…');
        }
        format!("symbolic expression {short}, column {}", text[..at].chars().count() + 1)
    };
    let tokens = tokenize(text).map_err(|(at, e)| e.at(place(at)))?;
    let mut parser = ExprParser { tokens: &tokens, at: 0, nesting: 0, names };
    parser.whole().map_err(|e| e.at(place(tokens.get(parser.at).map_or(text.len(), |t| t.0))))
}

/// The meaning of a part of the text.
enum Term {
    Value(Expr),
    Str(String),
    /// A name with its dots, before it is known whether it is called.
    Name(String),
    /// An input, or a part of one; with the property that was just asked for.
    Input(Vec<PathStep>, Option<Asked>),
    /// A value and its condition in a `Piecewise`.
    Pair(Expr, Expr),
}

enum Asked {
    /// `size()`, before a dimension is chosen
    Sizes,
    Property(InputProperty),
}

/// A term and the depth of its expression, so that long chains are bounded like deep parentheses.
type TermTree = (Term, usize);

struct ExprParser<'t> {
    tokens: &'t [(usize, ExprToken<'t>)],
    at: usize,
    nesting: usize,
    names: &'t dyn ExprNames,
}

fn too_deep() -> Pt2Error {
    Pt2Error::too_large(format!("nested more than {MAX_DEPTH} deep"))
}

fn grown(value: Expr, below: usize) -> Result<TermTree> {
    if below < MAX_DEPTH { Ok((Term::Value(value), below + 1)) } else { Err(too_deep()) }
}

fn negated(e: Expr) -> Expr {
    Expr::call(ExprFn::Mul, vec![Expr::Int(-1), e])
}

fn integer(term: &Term) -> Option<i64> {
    match term {
        Term::Value(Expr::Int(n)) => Some(*n),
        _ => None,
    }
}

/// Binding strength of the operators between values; comparisons, `not`, `and`, `or` bind less.
fn strength(op: &str) -> u8 {
    match op {
        "|" => 1,
        "&" => 3,
        "<<" | ">>" => 4,
        "+" | "-" => 5,
        "*" | "/" | "//" | "%" => 6,
        _ => 0,
    }
}

/// The value of an operator between two others. sympy prints its logical operators as `&` and `|`, too.
fn binary(op: &str, a: Expr, b: Expr) -> Expr {
    let logical = a.is_bool() && b.is_bool();
    let f = match op {
        "|" if logical => ExprFn::Or,
        "|" => ExprFn::BitOr,
        "&" if logical => ExprFn::And,
        "&" => ExprFn::BitAnd,
        "<<" => ExprFn::LShift,
        ">>" => ExprFn::RShift,
        "-" => return Expr::call(ExprFn::Add, vec![a, negated(b)]),
        "+" => ExprFn::Add,
        "*" => ExprFn::Mul,
        "/" => ExprFn::TrueDiv,
        "//" => ExprFn::FloorDiv,
        _ => ExprFn::Mod,
    };
    Expr::call(f, vec![a, b])
}

fn comparison(op: &str) -> Option<ExprFn> {
    Some(match op {
        "==" => ExprFn::Eq,
        "!=" => ExprFn::Ne,
        "<" => ExprFn::Lt,
        "<=" => ExprFn::Le,
        ">" => ExprFn::Gt,
        ">=" => ExprFn::Ge,
        _ => return None,
    })
}

impl<'t> ExprParser<'t> {
    fn whole(&mut self) -> Result<Expr> {
        let tree = self.expression()?;
        if self.at < self.tokens.len() {
            return Err(self.unexpected());
        }
        Ok(self.value(tree)?.0)
    }

    fn unexpected(&self) -> Pt2Error {
        Pt2Error::malformed(match self.peek() {
            None => "the expression ends too early".to_string(),
            Some(token) => format!("unexpected {token:?}"),
        })
    }

    fn peek(&self) -> Option<&'t ExprToken<'t>> {
        self.tokens.get(self.at).map(|t| &t.1)
    }

    fn op(&self) -> &'static str {
        if let Some(ExprToken::Op(op)) = self.peek() { op } else { "" }
    }

    fn take(&mut self, op: &str) -> bool {
        let found = self.op() == op;
        self.at += usize::from(found);
        found
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Some(ExprToken::Name(n)) if *n == word);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, op: &str) -> Result<()> {
        if self.take(op) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn nested(&mut self, part: fn(&mut Self) -> Result<TermTree>) -> Result<TermTree> {
        self.nesting += 1;
        if self.nesting > MAX_DEPTH {
            return Err(too_deep());
        }
        let tree = part(self)?;
        self.nesting -= 1;
        Ok(tree)
    }

    /// A term as a value.
    fn value(&self, (term, depth): TermTree) -> Result<(Expr, usize)> {
        let unknown = |what: String| Pt2Error::unsupported(what);
        let value = match term {
            Term::Value(e) => e,
            Term::Name(n) => match n.as_str() {
                "true" | "True" => Expr::Bool(true),
                "false" | "False" => Expr::Bool(false),
                "oo" | "int_oo" | "math.inf" => Expr::float(f64::INFINITY),
                "nan" | "math.nan" => Expr::float(f64::NAN),
                n => {
                    let symbol = if n.contains('.') { None } else { self.names.symbol(n, false) };
                    symbol.ok_or_else(|| unknown(format!("unknown name {n}")))?
                }
            },
            Term::Input(mut path, method) => {
                let property = match (method, path.last()) {
                    (Some(Asked::Property(property)), _) => Some(property),
                    (None, Some(PathStep::Attr(a))) if a == "ndim" => {
                        path.pop();
                        Some(InputProperty::Rank)
                    }
                    (Some(Asked::Sizes), _) | (None, Some(PathStep::Attr(_)) | None) => None,
                    (None, Some(_)) => Some(InputProperty::Value),
                };
                let found = property.and_then(|property| self.names.input(&path, property));
                found.ok_or_else(|| unknown("unsupported property of an input".into()))?
            }
            Term::Str(_) => return Err(unknown("a string where a number is expected".into())),
            Term::Pair(..) => return Err(unknown("ExprCondPair outside of Piecewise".into())),
        };
        Ok((value, depth))
    }

    /// `a if c else b`, and all that binds tighter.
    fn expression(&mut self) -> Result<TermTree> {
        self.nested(|parser| {
            let then = parser.disjunction()?;
            if !parser.take_word("if") {
                return Ok(then);
            }
            let (then, d1) = parser.value(then)?;
            let condition = parser.disjunction()?;
            let (condition, d2) = parser.value(condition)?;
            if !parser.take_word("else") {
                return Err(parser.unexpected());
            }
            let otherwise = parser.expression()?;
            let (otherwise, d3) = parser.value(otherwise)?;
            grown(Expr::call(ExprFn::Where, vec![condition, then, otherwise]), d1.max(d2).max(d3))
        })
    }

    fn disjunction(&mut self) -> Result<TermTree> {
        self.joined("or", Self::conjunction, ExprFn::Or)
    }

    fn conjunction(&mut self) -> Result<TermTree> {
        self.joined("and", Self::negation, ExprFn::And)
    }

    fn joined(&mut self, word: &str, part: fn(&mut Self) -> Result<TermTree>, f: ExprFn) -> Result<TermTree> {
        let mut tree = part(self)?;
        let mut parts = Vec::new();
        let mut deepest = 0;
        while self.take_word(word) {
            let (value, depth) = self.value(tree)?;
            parts.push(value);
            deepest = deepest.max(depth);
            tree = part(self)?;
        }
        if parts.is_empty() {
            return Ok(tree);
        }
        let (last, depth) = self.value(tree)?;
        parts.push(last);
        grown(Expr::call(f, parts), deepest.max(depth))
    }

    fn negation(&mut self) -> Result<TermTree> {
        let mut count = 0;
        while self.take_word("not") {
            count += 1;
        }
        let mut tree = self.comparison()?;
        for _ in 0..count {
            let (value, depth) = self.value(tree)?;
            tree = grown(Expr::call(ExprFn::Not, vec![value]), depth)?;
        }
        Ok(tree)
    }

    /// A chain of comparisons: every neighbouring pair must compare so.
    fn comparison(&mut self) -> Result<TermTree> {
        let first = self.arithmetic(0)?;
        if comparison(self.op()).is_none() {
            return Ok(first);
        }
        let (mut left, mut deepest) = self.value(first)?;
        let mut parts = Vec::new();
        while let Some(f) = comparison(self.op()) {
            self.at += 1;
            let right = self.arithmetic(0)?;
            let (right, depth) = self.value(right)?;
            deepest = deepest.max(depth);
            parts.push(Expr::call(f, vec![left, right.clone()]));
            left = right;
        }
        match parts.pop() {
            Some(only) if parts.is_empty() => grown(only, deepest),
            last => {
                parts.extend(last);
                grown(Expr::call(ExprFn::And, parts), deepest + 1)
            }
        }
    }

    fn arithmetic(&mut self, above: u8) -> Result<TermTree> {
        let mut left = self.signed()?;
        loop {
            let op = self.op();
            if strength(op) <= above {
                return Ok(left);
            }
            self.at += 1;
            let (a, d1) = self.value(left)?;
            let right = self.arithmetic(strength(op))?;
            let (b, d2) = self.value(right)?;
            left = grown(binary(op, a, b), d1.max(d2))?;
        }
    }

    fn signed(&mut self) -> Result<TermTree> {
        let sign = self.op();
        if !matches!(sign, "-" | "+" | "~") {
            return self.power();
        }
        self.at += 1;
        let operand = self.nested(Self::signed)?;
        let (value, depth) = self.value(operand)?;
        match sign {
            "-" => grown(negated(value), depth),
            "~" if value.is_bool() => grown(Expr::call(ExprFn::Not, vec![value]), depth),
            "~" => Err(Pt2Error::unsupported("~ of a number")),
            _ => Ok((Term::Value(value), depth)),
        }
    }

    /// `**` binds tighter than a sign on its left, and less than one on its right.
    fn power(&mut self) -> Result<TermTree> {
        let base = self.postfix()?;
        if !self.take("**") {
            return Ok(base);
        }
        let (base, d1) = self.value(base)?;
        let exponent = self.nested(Self::signed)?;
        let (exponent, d2) = self.value(exponent)?;
        grown(Expr::call(ExprFn::Pow, vec![base, exponent]), d1.max(d2))
    }

    fn postfix(&mut self) -> Result<TermTree> {
        let (mut term, mut depth) = self.atom()?;
        loop {
            if self.take(".") {
                let Some(ExprToken::Name(name)) = self.peek() else { return Err(self.unexpected()) };
                term = match term {
                    Term::Name(of) => Term::Name(format!("{of}.{name}")),
                    Term::Input(mut path, None) => {
                        path.push(PathStep::Attr(name.to_string()));
                        Term::Input(path, None)
                    }
                    _ => return Err(Pt2Error::unsupported("attribute of a number")),
                };
                self.at += 1;
            } else if self.take("[") {
                let key = self.expression()?.0;
                self.expect("]")?;
                term = indexed(term, key)?;
            } else if self.take("(") {
                (term, depth) = self.call(term)?;
            } else {
                return Ok((term, depth));
            }
            depth += 1;
            if depth > MAX_DEPTH {
                return Err(too_deep());
            }
        }
    }

    fn call(&mut self, function: Term) -> Result<TermTree> {
        let mut deepest = 0;
        let mut args = Vec::new();
        let mut keywords = Vec::new();
        while !self.take(")") {
            let keyword = match (self.peek(), self.tokens.get(self.at + 1)) {
                (Some(ExprToken::Name(n)), Some((_, ExprToken::Op("=")))) => Some(*n),
                _ => None,
            };
            self.at += if keyword.is_some() { 2 } else { 0 };
            let (term, depth) = self.expression()?;
            deepest = deepest.max(depth);
            match keyword {
                Some(name) => keywords.push((name, term)),
                None if keywords.is_empty() => args.push((term, depth)),
                None => return Err(self.unexpected()),
            }
            if !self.take(",") {
                self.expect(")")?;
                break;
            }
        }
        let term = match function {
            Term::Name(name) => self.function(&name, args, &keywords)?,
            Term::Input(path, None) if keywords.is_empty() => method(path, &args)?,
            _ => return Err(Pt2Error::unsupported("a call of something other than a function")),
        };
        Ok((term, deepest))
    }

    fn function(&self, name: &str, args: Vec<TermTree>, keywords: &[(&str, Term)]) -> Result<Term> {
        let bad = || Pt2Error::malformed(format!("{name} does not take these arguments"));
        let flag = |term: &Term| matches!(term, Term::Name(b) if b == "True" || b == "False");
        match (name, &args[..]) {
            ("Symbol", [(Term::Str(symbol), _)]) if keywords.iter().all(|(_, v)| flag(v)) => {
                let yes = |term: &Term| matches!(term, Term::Name(b) if b == "True");
                let positive = keywords.iter().any(|(k, v)| *k == "positive" && yes(v));
                let found = self.names.symbol(symbol, positive);
                return found.map(Term::Value).ok_or_else(|| Pt2Error::unsupported(format!("unknown name {symbol}")));
            }
            ("Integer", [(Term::Value(Expr::Int(n)), _)]) if keywords.is_empty() => {
                return Ok(Term::Value(Expr::Int(*n)));
            }
            // PyTorch's floats all have 53 bits; the keyword is ignored.
            ("Float", [(Term::Str(digits), _)]) => {
                return digits.parse().map(|x| Term::Value(Expr::float(x))).map_err(|_| bad());
            }
            ("Symbol" | "Integer" | "Float", _) => return Err(bad()),
            ("IntInfinity" | "Infinity", []) => return Ok(Term::Value(Expr::float(f64::INFINITY))),
            ("NegativeIntInfinity" | "NegativeInfinity", []) => {
                return Ok(Term::Value(Expr::float(f64::NEG_INFINITY)));
            }
            // `evaluate=False` tells sympy how to build the expression.
            _ if keywords.iter().any(|(k, _)| *k != "evaluate") => return Err(bad()),
            ("Piecewise", _) => return piecewise(args).map(Term::Value),
            _ => {}
        }
        let mut values = args.into_iter().map(|a| Ok(self.value(a)?.0)).collect::<Result<Vec<_>>>()?;
        match (name, &mut values[..]) {
            ("ExprCondPair", [value, condition]) => return Ok(Term::Pair(value.clone(), condition.clone())),
            ("Identity", [value]) => return Ok(Term::Value(value.clone())),
            // ceil(a / b) = -(-a // b)
            ("CeilDiv", [a, b]) => return Ok(Term::Value(negated(negated(a.clone()).floor_div(b)))),
            _ => {}
        }
        let (f, count) = named(name).ok_or_else(|| Pt2Error::unsupported(format!("unsupported function {name}")))?;
        if !count.contains(&values.len()) {
            return Err(bad());
        }
        Ok(Term::Value(Expr::call(f, values)))
    }

    fn atom(&mut self) -> Result<TermTree> {
        const KEYWORDS: [&str; 8] = ["and", "or", "not", "if", "else", "in", "is", "lambda"];
        let term = match self.peek() {
            Some(ExprToken::Name(n)) if !KEYWORDS.contains(n) => Term::Name(n.to_string()),
            Some(ExprToken::Int(n)) => Term::Value(Expr::Int(*n)),
            Some(ExprToken::Float(x)) => Term::Value(Expr::float(*x)),
            Some(ExprToken::Str(s)) => Term::Str(s.clone()),
            Some(ExprToken::Op("(")) => {
                self.at += 1;
                let inner = self.expression()?;
                self.expect(")")?;
                return Ok(inner);
            }
            _ => return Err(self.unexpected()),
        };
        self.at += 1;
        Ok((term, 1))
    }
}

/// `x[key]`: a step of a path, or a dimension.
fn indexed(term: Term, key: Term) -> Result<Term> {
    let unknown = || Pt2Error::unsupported("unsupported index");
    let mut path = match term {
        Term::Name(n) if n == "L" => Vec::new(),
        Term::Input(path, Some(Asked::Sizes)) => {
            let dim = integer(&key).ok_or_else(unknown)?;
            return Ok(Term::Input(path, Some(Asked::Property(InputProperty::Size(dim)))));
        }
        Term::Input(path, None) => path,
        _ => return Err(unknown()),
    };
    if let (Some(PathStep::Attr(a)), Some(dim)) = (path.last(), integer(&key))
        && a == "shape"
    {
        path.pop();
        return Ok(Term::Input(path, Some(Asked::Property(InputProperty::Size(dim)))));
    }
    path.push(match key {
        Term::Str(s) => PathStep::Key(s),
        key => PathStep::Index(integer(&key).ok_or_else(unknown)?),
    });
    Ok(Term::Input(path, None))
}

/// `x.name(args)`, the name being the path's last step.
fn method(mut path: Vec<PathStep>, args: &[TermTree]) -> Result<Term> {
    let unknown = || Pt2Error::unsupported("unsupported method of an input");
    let Some(PathStep::Attr(name)) = path.pop() else { return Err(unknown()) };
    let method = match (name.as_str(), args) {
        ("size", []) => Asked::Sizes,
        ("size", [(dim, _)]) => Asked::Property(InputProperty::Size(integer(dim).ok_or_else(unknown)?)),
        ("dim" | "ndimension", []) => Asked::Property(InputProperty::Rank),
        ("numel", []) => Asked::Property(InputProperty::Numel),
        _ => return Err(unknown()),
    };
    Ok(Term::Input(path, Some(method)))
}

/// The first value whose condition holds; the last value is taken without asking.
fn piecewise(pairs: Vec<TermTree>) -> Result<Expr> {
    let mut out: Option<Expr> = None;
    for (pair, _) in pairs.into_iter().rev() {
        let Term::Pair(value, condition) = pair else {
            return Err(Pt2Error::unsupported("a Piecewise of something else than pairs"));
        };
        out = Some(match out {
            None => value,
            Some(otherwise) => Expr::call(ExprFn::Where, vec![condition, value, otherwise]),
        });
    }
    out.ok_or_else(|| Pt2Error::unsupported("a Piecewise without pairs"))
}
