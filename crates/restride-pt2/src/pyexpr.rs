//! A parser for Python expressions, as far as symbolic shapes and guards need it. Both sympy forms and the guards
//! are read through it.

use crate::error::{Pt2Error, Result};

/// Deepest tree that is built; also bounds the recursion of whoever walks it.
pub(crate) const MAX_DEPTH: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unary {
    Neg,
    Pos,
    Invert,
    Not,
}

/// Arithmetic between two numbers, with Python's meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // the names are Python's operators
pub enum Binary {
    Add,
    Sub,
    Mul,
    TrueDiv,
    FloorDiv,
    Mod,
    Pow,
    LShift,
    RShift,
    BitAnd,
    BitOr,
    BitXor,
}

/// A comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compare {
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expr {
    Name(String),
    Int(i64),
    Float(f64),
    Str(String),
    Attr(Box<Expr>, String),
    Index(Box<Expr>, Box<Expr>),
    Call { function: Box<Expr>, args: Vec<Expr>, keywords: Vec<(String, Expr)> },
    Unary(Unary, Box<Expr>),
    Binary(Binary, Box<Expr>, Box<Expr>),
    Compare(Box<Expr>, Vec<(Compare, Expr)>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    IfElse { then: Box<Expr>, condition: Box<Expr>, otherwise: Box<Expr> },
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Name(String),
    Int(i64),
    Float(f64),
    Str(String),
    Op(&'static str),
}

/// Longest first, so that `**` is not read as two `*`.
const OPERATORS: [&str; 27] = [
    "**", "//", "==", "!=", "<=", ">=", "<<", ">>", "+", "-", "*", "/", "%", "(", ")", "[", "]", ",", ".", "=", "<",
    ">", "&", "|", "^", "~", ":",
];

fn tokenize(text: &str) -> Result<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(c) = rest.chars().next() {
        let (token, len) = if c == '_' || c.is_alphabetic() {
            let len = rest.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(rest.len());
            (Token::Name(rest[..len].to_string()), len)
        } else if c.is_ascii_digit() || (c == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit())) {
            number(rest)?
        } else if c == '\'' || c == '"' {
            string(rest, c)?
        } else if let Some(op) = OPERATORS.iter().find(|op| rest.starts_with(**op)) {
            (Token::Op(op), op.len())
        } else {
            return Err(Pt2Error::unsupported(format!("character {c:?} in an expression")));
        };
        tokens.push(token);
        rest = rest[len..].trim_start();
    }
    Ok(tokens)
}

fn number(text: &str) -> Result<(Token, usize)> {
    let bytes = text.as_bytes();
    let digits = |mut at: usize| {
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        at
    };
    let mut at = digits(0);
    let mut float = false;
    if bytes.get(at) == Some(&b'.') {
        float = true;
        at = digits(at + 1);
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let end = digits(at + 1 + sign);
        if end > at + 1 + sign {
            float = true;
            at = end;
        }
    }
    let word = &text[..at];
    let bad = || Pt2Error::too_large(format!("the number {word} does not fit"));
    let token = if float {
        Token::Float(word.parse().map_err(|_| bad())?)
    } else {
        Token::Int(word.parse().map_err(|_| bad())?)
    };
    Ok((token, at))
}

fn string(text: &str, quote: char) -> Result<(Token, usize)> {
    let mut out = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            c if c == quote => return Ok((Token::Str(out), at + 1)),
            '\\' => match chars.next() {
                Some((_, c @ ('\\' | '\'' | '"'))) => out.push(c),
                Some((_, 'n')) => out.push('\n'),
                Some((_, 't')) => out.push('\t'),
                _ => return Err(Pt2Error::unsupported("an escape in a string")),
            },
            c => out.push(c),
        }
    }
    Err(Pt2Error::malformed("a string without an end"))
}

/// Parses a whole expression.
pub(crate) fn parse(text: &str) -> Result<Expr> {
    let tokens = tokenize(text)?;
    let mut parser = Parser { tokens: &tokens, at: 0, nesting: 0 };
    let tree = parser.expression()?;
    if parser.at < tokens.len() {
        return Err(parser.unexpected());
    }
    Ok(tree.expr)
}

/// An expression and its depth, so that long chains are bounded like deep parentheses.
struct Tree {
    expr: Expr,
    depth: usize,
}

fn grow(expr: Expr, below: usize) -> Result<Tree> {
    let depth = below + 1;
    if depth > MAX_DEPTH {
        return Err(too_deep());
    }
    Ok(Tree { expr, depth })
}

fn too_deep() -> Pt2Error {
    Pt2Error::too_large(format!("an expression nested more than {MAX_DEPTH} deep"))
}

struct Parser<'t> {
    tokens: &'t [Token],
    at: usize,
    nesting: usize,
}

/// Binding strength of the operators between values; comparisons, `not`, `and`, `or` bind less.
fn binary_of(op: &str) -> Option<(Binary, u8)> {
    Some(match op {
        "|" => (Binary::BitOr, 1),
        "^" => (Binary::BitXor, 2),
        "&" => (Binary::BitAnd, 3),
        "<<" => (Binary::LShift, 4),
        ">>" => (Binary::RShift, 4),
        "+" => (Binary::Add, 5),
        "-" => (Binary::Sub, 5),
        "*" => (Binary::Mul, 6),
        "/" => (Binary::TrueDiv, 6),
        "//" => (Binary::FloorDiv, 6),
        "%" => (Binary::Mod, 6),
        _ => return None,
    })
}

fn compare_of(op: &str) -> Option<Compare> {
    Some(match op {
        "==" => Compare::Eq,
        "!=" => Compare::Ne,
        "<" => Compare::Lt,
        "<=" => Compare::Le,
        ">" => Compare::Gt,
        ">=" => Compare::Ge,
        _ => return None,
    })
}

impl Parser<'_> {
    fn unexpected(&self) -> Pt2Error {
        Pt2Error::malformed(match self.tokens.get(self.at) {
            None => "an expression that ends too early".to_string(),
            Some(t) => format!("{t:?} where an expression does not allow it"),
        })
    }

    fn op(&self) -> Option<&'static str> {
        match self.tokens.get(self.at) {
            Some(Token::Op(op)) => Some(op),
            _ => None,
        }
    }

    fn take(&mut self, op: &str) -> bool {
        let found = self.op() == Some(op);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, op: &str) -> Result<()> {
        if self.take(op) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = matches!(self.tokens.get(self.at), Some(Token::Name(n)) if n == word);
        self.at += usize::from(found);
        found
    }

    /// `a if c else b`, and all that binds tighter.
    fn expression(&mut self) -> Result<Tree> {
        self.nesting += 1;
        if self.nesting > MAX_DEPTH {
            return Err(too_deep());
        }
        let then = self.disjunction()?;
        let tree = if self.take_word("if") {
            let condition = self.disjunction()?;
            if !self.take_word("else") {
                return Err(self.unexpected());
            }
            let otherwise = self.expression()?;
            let below = then.depth.max(condition.depth).max(otherwise.depth);
            grow(
                Expr::IfElse {
                    then: Box::new(then.expr),
                    condition: Box::new(condition.expr),
                    otherwise: Box::new(otherwise.expr),
                },
                below,
            )?
        } else {
            then
        };
        self.nesting -= 1;
        Ok(tree)
    }

    fn disjunction(&mut self) -> Result<Tree> {
        self.joined("or", Self::conjunction, Expr::Or)
    }

    fn conjunction(&mut self) -> Result<Tree> {
        self.joined("and", Self::negation, Expr::And)
    }

    fn joined(&mut self, word: &str, part: fn(&mut Self) -> Result<Tree>, make: fn(Vec<Expr>) -> Expr) -> Result<Tree> {
        let first = part(self)?;
        if !self.take_word(word) {
            return Ok(first);
        }
        let mut below = first.depth;
        let mut parts = vec![first.expr];
        loop {
            let next = part(self)?;
            below = below.max(next.depth);
            parts.push(next.expr);
            if !self.take_word(word) {
                return grow(make(parts), below);
            }
        }
    }

    fn negation(&mut self) -> Result<Tree> {
        let mut count = 0;
        while self.take_word("not") {
            count += 1;
        }
        let mut tree = self.comparison()?;
        for _ in 0..count {
            tree = grow(Expr::Unary(Unary::Not, Box::new(tree.expr)), tree.depth)?;
        }
        Ok(tree)
    }

    fn comparison(&mut self) -> Result<Tree> {
        let first = self.arithmetic(0)?;
        let mut below = first.depth;
        let mut rest = Vec::new();
        while let Some(c) = self.op().and_then(compare_of) {
            self.at += 1;
            let next = self.arithmetic(0)?;
            below = below.max(next.depth);
            rest.push((c, next.expr));
        }
        if rest.is_empty() {
            return Ok(first);
        }
        grow(Expr::Compare(Box::new(first.expr), rest), below)
    }

    fn arithmetic(&mut self, above: u8) -> Result<Tree> {
        let mut left = self.signed()?;
        while let Some((op, strength)) = self.op().and_then(binary_of) {
            if strength <= above {
                break;
            }
            self.at += 1;
            let right = self.arithmetic(strength)?;
            let below = left.depth.max(right.depth);
            left = grow(Expr::Binary(op, Box::new(left.expr), Box::new(right.expr)), below)?;
        }
        Ok(left)
    }

    fn signed(&mut self) -> Result<Tree> {
        let sign = match self.op() {
            Some("-") => Unary::Neg,
            Some("+") => Unary::Pos,
            Some("~") => Unary::Invert,
            _ => return self.power(),
        };
        self.at += 1;
        // The smallest integer has no positive counterpart that fits.
        if sign == Unary::Neg
            && let Some(Token::Op("-" | "+" | "~")) = self.tokens.get(self.at)
        {
            return Err(self.unexpected());
        }
        self.nesting += 1;
        if self.nesting > MAX_DEPTH {
            return Err(too_deep());
        }
        let operand = self.signed()?;
        self.nesting -= 1;
        grow(Expr::Unary(sign, Box::new(operand.expr)), operand.depth)
    }

    /// `**` binds tighter than a sign on its left, and less than one on its right.
    fn power(&mut self) -> Result<Tree> {
        let base = self.postfix()?;
        if !self.take("**") {
            return Ok(base);
        }
        self.nesting += 1;
        if self.nesting > MAX_DEPTH {
            return Err(too_deep());
        }
        let exponent = self.signed()?;
        self.nesting -= 1;
        let below = base.depth.max(exponent.depth);
        grow(Expr::Binary(Binary::Pow, Box::new(base.expr), Box::new(exponent.expr)), below)
    }

    fn postfix(&mut self) -> Result<Tree> {
        let mut tree = self.atom()?;
        loop {
            if self.take(".") {
                let Some(Token::Name(name)) = self.tokens.get(self.at) else {
                    return Err(self.unexpected());
                };
                self.at += 1;
                tree = grow(Expr::Attr(Box::new(tree.expr), name.clone()), tree.depth)?;
            } else if self.take("[") {
                let index = self.expression()?;
                self.expect("]")?;
                let below = tree.depth.max(index.depth);
                tree = grow(Expr::Index(Box::new(tree.expr), Box::new(index.expr)), below)?;
            } else if self.take("(") {
                tree = self.call(tree)?;
            } else {
                return Ok(tree);
            }
        }
    }

    fn call(&mut self, function: Tree) -> Result<Tree> {
        let mut below = function.depth;
        let mut args = Vec::new();
        let mut keywords = Vec::new();
        while !self.take(")") {
            let keyword = match (self.tokens.get(self.at), self.tokens.get(self.at + 1)) {
                (Some(Token::Name(n)), Some(Token::Op("="))) => {
                    self.at += 2;
                    Some(n.clone())
                }
                _ => None,
            };
            let value = self.expression()?;
            below = below.max(value.depth);
            match keyword {
                Some(name) => keywords.push((name, value.expr)),
                None if keywords.is_empty() => args.push(value.expr),
                None => return Err(self.unexpected()),
            }
            if !self.take(",") {
                self.expect(")")?;
                break;
            }
        }
        grow(Expr::Call { function: Box::new(function.expr), args, keywords }, below)
    }

    fn atom(&mut self) -> Result<Tree> {
        let expr = match self.tokens.get(self.at) {
            Some(Token::Name(n)) if ["and", "or", "not", "if", "else", "in", "is", "lambda"].contains(&n.as_str()) => {
                return Err(self.unexpected());
            }
            Some(Token::Name(n)) => Expr::Name(n.clone()),
            Some(Token::Int(n)) => Expr::Int(*n),
            Some(Token::Float(x)) => Expr::Float(*x),
            Some(Token::Str(s)) => Expr::Str(s.clone()),
            Some(Token::Op("(")) => {
                self.at += 1;
                let inner = self.expression()?;
                self.expect(")")?;
                return Ok(inner);
            }
            _ => return Err(self.unexpected()),
        };
        self.at += 1;
        grow(expr, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(text: &str) -> String {
        fn walk(e: &Expr) -> String {
            match e {
                Expr::Name(n) => n.clone(),
                Expr::Int(n) => n.to_string(),
                Expr::Binary(op, a, b) => format!("({op:?} {} {})", walk(a), walk(b)),
                Expr::Unary(op, a) => format!("({op:?} {})", walk(a)),
                Expr::Compare(a, rest) => {
                    let rest: Vec<_> = rest.iter().map(|(c, e)| format!("{c:?} {}", walk(e))).collect();
                    format!("[{} {}]", walk(a), rest.join(" "))
                }
                Expr::And(v) => {
                    format!("and({})", v.iter().map(walk).collect::<Vec<_>>().join(" "))
                }
                Expr::Or(v) => format!("or({})", v.iter().map(walk).collect::<Vec<_>>().join(" ")),
                e => format!("{e:?}"),
            }
        }
        walk(&parse(text).unwrap())
    }

    #[test]
    fn precedence_is_pythons() {
        assert_eq!(show("a + b*c - d"), "(Sub (Add a (Mul b c)) d)");
        assert_eq!(show("a // b % c"), "(Mod (FloorDiv a b) c)");
        assert_eq!(show("-a**2"), "(Neg (Pow a 2))");
        assert_eq!(show("a**-b"), "(Pow a (Neg b))");
        assert_eq!(show("2**3**2"), "(Pow 2 (Pow 3 2))");
        assert_eq!(show("a < b + 1 <= c"), "[a Lt (Add b 1) Le c]");
        assert_eq!(show("not a == b and c or d"), "or(and((Not [a Eq b]) c) d)");
        assert_eq!(show("a | b ^ c & d << 1"), "(BitOr a (BitXor b (BitAnd c (LShift d 1))))");
        assert_eq!(show("-a*b"), "(Mul (Neg a) b)");
    }

    #[test]
    fn numbers() {
        assert_eq!(parse("1.5e+3"), Ok(Expr::Float(1500.0)));
        assert_eq!(parse(".5"), Ok(Expr::Float(0.5)));
        assert_eq!(parse("2e"), Err(Pt2Error::malformed("Name(\"e\") where an expression does not allow it")));
        assert!(parse("9223372036854775808").is_err());
    }

    #[test]
    fn depth_is_bounded_in_every_direction() {
        let n = 100_000;
        let cases = [
            format!("{}a{}", "(".repeat(n), ")".repeat(n)),
            format!("{}a", "- ".repeat(n)),
            format!("{}a", "~".repeat(n)),
            format!("{}a", "+".repeat(n)),
            format!("{}a", "not ".repeat(n)),
            format!("a{}", " + a".repeat(n)),
            format!("a{}", "**a".repeat(n)),
            format!("a{}", ".a".repeat(n)),
            format!("a{}", "[0]".repeat(n)),
            format!("a{}", "()".repeat(n)),
            "f(".repeat(n),
            format!("a{}", " if a else a".repeat(n)),
        ];
        for text in cases {
            assert!(parse(&text).is_err(), "{}", &text[..20]);
        }
        let wide = format!("a{}", " and a".repeat(n));
        assert!(parse(&wide).is_ok());
    }

    #[test]
    fn truncation_never_panics() {
        let text = "L['x'].size(a=1)[0] // (2 if é == \"\\n\" else 1.5e3) >= -1 and not ~b";
        assert!(parse(text).is_ok());
        for (n, _) in text.char_indices() {
            let _ = parse(&text[..n]);
        }
    }
}
