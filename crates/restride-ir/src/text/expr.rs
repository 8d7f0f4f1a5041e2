//! Reading numbers, symbolic expressions and types.

use super::lex::Tok;
use super::parse::{Parser, cut};
use crate::{DType, Dims, Error, Expr, ExprFn, Layout, Result, TensorType, Type};

/// Deepest nesting of parentheses and calls.
const DEPTH: u32 = 200;

/// Boxed, because every level of nesting pays for the size of an error several times.
type Boxed<T> = std::result::Result<T, Box<Error>>;

impl Parser<'_> {
    /// A number or symbolic expression.
    pub fn expr(&mut self) -> Result<Expr> {
        self.sum(0).map_err(|e| *e)
    }

    fn sum(&mut self, depth: u32) -> Boxed<Expr> {
        if depth > DEPTH {
            return Ok(self.error("this expression is nested too deeply")?);
        }
        let mut terms = vec![self.product(depth)?];
        loop {
            let minus = match self.tok.tok {
                Tok::Punct('+') => false,
                Tok::Punct('-') => true,
                _ => break,
            };
            self.bump()?;
            let term = self.product(depth)?;
            terms.push(if minus { Expr::call(ExprFn::Mul, vec![Expr::Int(-1), term]) } else { term });
        }
        Ok(joined(ExprFn::Add, terms))
    }

    fn product(&mut self, depth: u32) -> Boxed<Expr> {
        let mut factors = vec![self.factor(depth)?];
        while self.eat('*')? {
            factors.push(self.factor(depth)?);
        }
        Ok(joined(ExprFn::Mul, factors))
    }

    fn factor(&mut self, depth: u32) -> Boxed<Expr> {
        let minus = self.eat('-')?;
        let (tok, text, at) = (self.tok.tok, self.text(), self.tok.start);
        match tok {
            Tok::Number => {
                self.bump()?;
                Ok(self.literal(text, minus, at)?)
            }
            Tok::Word => {
                self.bump()?;
                match text {
                    "True" | "False" if !minus => return Ok(Expr::Bool(text == "True")),
                    "inf" => return Ok(Expr::float(if minus { f64::NEG_INFINITY } else { f64::INFINITY })),
                    "NaN" | "nan" if !minus => return Ok(Expr::float(f64::NAN)),
                    _ => {}
                }
                let value = if self.is('(') { self.call(text, at, depth)? } else { self.declared(text, at)? };
                Ok(negated(minus, value))
            }
            Tok::Punct('(') => {
                self.bump()?;
                let value = self.sum(depth + 1)?;
                self.expect(')')?;
                Ok(negated(minus, value))
            }
            _ => Ok(self.expected("a number or an expression")?),
        }
    }

    fn function(&self, name: &str, at: usize) -> Result<ExprFn> {
        match ExprFn::from_name(name) {
            Some(f) => Ok(f),
            None => self.error_at(at, format_args!("unknown function `{}`", cut(name))),
        }
    }

    fn arguments(&mut self, args: &mut Vec<Expr>, depth: u32) -> Boxed<()> {
        self.expect('(')?;
        while !self.is(')') {
            args.push(self.sum(depth + 1)?);
            if !self.eat(',')? {
                break;
            }
        }
        Ok(self.expect(')')?)
    }

    fn applied(&self, f: ExprFn, name: &str, args: Vec<Expr>, at: usize) -> Result<Expr> {
        let given = args.len();
        let takes = match f {
            ExprFn::Add | ExprFn::Mul | ExprFn::Min | ExprFn::Max | ExprFn::And | ExprFn::Or => given.max(1),
            ExprFn::Where | ExprFn::ModularIndexing => 3,
            ExprFn::Abs
            | ExprFn::Ceil
            | ExprFn::Floor
            | ExprFn::Trunc
            | ExprFn::Round
            | ExprFn::ToFloat
            | ExprFn::Sqrt
            | ExprFn::Not => 1,
            _ => 2,
        };
        if given == takes {
            return Ok(Expr::call(f, args));
        }
        self.error_at(at, format_args!("{name} takes {takes} arguments, {given} given"))
    }

    // Functions of their own, because every level of nesting pays for the frame of its callers.
    fn literal(&self, text: &str, minus: bool, at: usize) -> Result<Expr> {
        let text = if minus { format!("-{text}") } else { text.to_string() };
        let whole = !text.contains(['.', 'e', 'E']);
        match (whole, text.parse::<i64>(), text.parse::<f64>()) {
            (true, Ok(i), _) => Ok(Expr::Int(i)),
            (true, ..) => self.error_at(at, format_args!("{} does not fit 64 bits", cut(&text))),
            (false, _, Ok(x)) => Ok(Expr::float(x)),
            _ => self.error_at(at, format_args!("`{}` is not a number", cut(&text))),
        }
    }

    fn declared(&self, text: &str, at: usize) -> Result<Expr> {
        match self.program.symbols.get(text) {
            Some(symbol) => Ok(Expr::Sym(symbol.clone())),
            None => self.error_at(at, format_args!("`{}` is no number and no declared symbol", cut(text))),
        }
    }

    fn call(&mut self, name: &str, at: usize, depth: u32) -> Boxed<Expr> {
        let f = self.function(name, at)?;
        let mut args = Vec::new();
        self.arguments(&mut args, depth)?;
        Ok(self.applied(f, name, args, at)?)
    }

    /// The type of a value.
    pub fn ty(&mut self) -> Result<Type> {
        if self.tok.tok != Tok::Word {
            return self.expected("a type");
        }
        match self.text() {
            "Sym" => {
                self.bump()?;
                self.expect('(')?;
                let expr = self.expr()?;
                self.expect(')')?;
                Ok(Type::Scalar(expr))
            }
            "None" => self.bump().map(|_| Type::None),
            "str" => self.bump().map(|_| Type::Str),
            "opaque" => self.bump().map(|_| Type::Opaque),
            _ => self.tensor_type().map(Type::Tensor),
        }
    }

    /// `f32[2, 3][1, 2]+4`.
    pub fn tensor_type(&mut self) -> Result<TensorType> {
        let name = if self.tok.tok == Tok::Word { self.text() } else { "" };
        let Some(dtype) = DType::ALL.into_iter().find(|d| d.name() == name) else {
            return self.expected("a type, as in `f32[2, 3]`");
        };
        self.bump()?;
        let sizes = self.dims()?;
        let mut layout = Layout::contiguous(&sizes);
        if self.is('[') {
            let at = self.tok.start;
            layout.strides = self.dims()?;
            if layout.strides.len() != sizes.len() {
                let (n, m) = (layout.strides.len(), sizes.len());
                return self.error_at(at, format_args!("{n} strides for {m} sizes"));
            }
        }
        if self.eat('+')? {
            layout.offset = self.dim()?;
        }
        Ok(TensorType { dtype, layout })
    }

    fn dims(&mut self) -> Result<Dims<Expr>> {
        self.expect('[')?;
        let mut dims = smallvec::SmallVec::new();
        while !self.is(']') {
            dims.push(self.dim()?);
            if !self.eat(',')? {
                break;
            }
        }
        self.expect(']')?;
        Ok(dims)
    }

    fn dim(&mut self) -> Result<Expr> {
        let at = self.tok.start;
        let dim = self.expr()?;
        if dim.is_float() || dim.is_bool() {
            return self.error_at(at, "sizes, strides and offsets are whole numbers");
        }
        Ok(dim)
    }
}

fn joined(f: ExprFn, mut items: Vec<Expr>) -> Expr {
    if items.len() == 1 { items.swap_remove(0) } else { Expr::call(f, items) }
}

fn negated(minus: bool, value: Expr) -> Expr {
    if minus { Expr::call(ExprFn::Mul, vec![Expr::Int(-1), value]) } else { value }
}
