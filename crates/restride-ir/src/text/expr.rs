//! Reading numbers, symbolic expressions and types.

use super::lex::Tok;
use super::parse::{Parser, cut};
use crate::{DType, Dims, Expr, ExprFn, Layout, Result, TensorType, Type};

/// Deepest nesting of parentheses and calls.
const DEPTH: u32 = 200;

impl Parser<'_> {
    /// A number or symbolic expression.
    pub fn expr(&mut self) -> Result<Expr> {
        self.sum(0)
    }

    fn sum(&mut self, depth: u32) -> Result<Expr> {
        if depth > DEPTH {
            return self.error("this expression is nested too deeply");
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

    fn product(&mut self, depth: u32) -> Result<Expr> {
        let mut factors = vec![self.factor(depth)?];
        while self.eat('*')? {
            factors.push(self.factor(depth)?);
        }
        Ok(joined(ExprFn::Mul, factors))
    }

    fn factor(&mut self, depth: u32) -> Result<Expr> {
        let minus = self.eat('-')?;
        let (tok, text, at) = (self.tok.tok, self.text(), self.tok.start);
        match tok {
            Tok::Number => {
                self.bump()?;
                let text = if minus { format!("-{text}") } else { text.to_string() };
                let whole = !text.contains(['.', 'e', 'E']);
                match (whole, text.parse::<i64>(), text.parse::<f64>()) {
                    (true, Ok(i), _) => Ok(Expr::Int(i)),
                    (true, ..) => self.error_at(at, format_args!("{} does not fit 64 bits", cut(&text))),
                    (false, _, Ok(x)) => Ok(Expr::float(x)),
                    _ => self.error_at(at, format_args!("`{}` is not a number", cut(&text))),
                }
            }
            Tok::Word => {
                self.bump()?;
                match text {
                    "True" | "False" if !minus => return Ok(Expr::Bool(text == "True")),
                    "inf" => return Ok(Expr::float(if minus { f64::NEG_INFINITY } else { f64::INFINITY })),
                    "NaN" | "nan" if !minus => return Ok(Expr::float(f64::NAN)),
                    _ => {}
                }
                let value = if self.is('(') {
                    self.call(text, at, depth)?
                } else if let Some(symbol) = self.program.symbols.get(text) {
                    Expr::Sym(symbol.clone())
                } else {
                    let text = cut(text);
                    return self.error_at(at, format_args!("`{text}` is no number and no declared symbol"));
                };
                Ok(negated(minus, value))
            }
            Tok::Punct('(') => {
                self.bump()?;
                let value = self.sum(depth + 1)?;
                self.expect(')')?;
                Ok(negated(minus, value))
            }
            _ => self.expected("a number or an expression"),
        }
    }

    fn call(&mut self, name: &str, at: usize, depth: u32) -> Result<Expr> {
        let Some(f) = ExprFn::from_name(name) else {
            return self.error_at(at, format_args!("unknown function `{}`", cut(name)));
        };
        self.expect('(')?;
        let mut args = Vec::new();
        while !self.is(')') {
            args.push(self.sum(depth + 1)?);
            if !self.eat(',')? {
                break;
            }
        }
        self.expect(')')?;
        let takes = match f {
            ExprFn::Add | ExprFn::Mul | ExprFn::Min | ExprFn::Max | ExprFn::And | ExprFn::Or => args.len().max(1),
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
        if args.len() != takes {
            return self.error_at(at, format_args!("{name} takes {takes} arguments, {} given", args.len()));
        }
        Ok(Expr::call(f, args))
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
