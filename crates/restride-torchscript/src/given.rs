//! Types and values of the inputs that a program is recorded for.

use restride_ir::{DType, Error, ErrorKind, Expr, Result, Scalar};
use restride_tensor::Layout;
use std::sync::Arc;

/// An input, as far as recording needs it: sizes of tensors, values of all else.
#[derive(Clone, PartialEq, Debug)]
pub enum GivenValue {
    /// A tensor of a type.
    Tensor(DType, Layout),
    /// A tensor without dimensions and its element: a number, where the code declares one.
    Element(DType, Scalar),
    /// A number.
    Number(Scalar),
    /// A string.
    Str(Arc<str>),
    /// `None`.
    None,
    /// A list.
    List(Vec<GivenValue>),
    /// A tuple.
    Tuple(Vec<GivenValue>),
    /// A dictionary.
    Dict(Vec<(Arc<str>, GivenValue)>),
}

/// A size that stays symbolic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dynamic {
    /// The input, by its name.
    pub input: String,
    /// The dimension.
    pub dim: usize,
    /// Its range.
    pub range: DynamicRange,
}

/// Values that a symbolic size may have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DynamicRange {
    /// From the least to the largest.
    Between(i64, i64),
    /// The same as a size of another input.
    Same(String, usize),
}

/// Inputs that a program is recorded for.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct GivenInputs {
    /// The inputs in order, or by name.
    pub items: Vec<(Option<Arc<str>>, GivenValue)>,
    /// Sizes that stay symbolic.
    pub dynamic: Vec<Dynamic>,
}

fn usage(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Inputs, what)
}

impl GivenInputs {
    /// Reads `x=f32[2,3],n=4,hs=[f32[1],f32[1]]`.
    ///
    /// # Errors
    /// Another form.
    pub fn parse_types(text: &str) -> Result<Vec<(Option<Arc<str>>, GivenValue)>> {
        let mut p = TypeParser { text, at: 0, depth: 0 };
        let mut out = Vec::new();
        loop {
            p.space();
            if p.at >= text.len() {
                return Ok(out);
            }
            let start = p.at;
            let name = p.word();
            p.space();
            if !name.is_empty() && p.eat('=') {
                out.push((Some(name.into()), p.value()?));
            } else {
                p.at = start;
                out.push((None, p.value()?));
            }
            p.space();
            if p.at < text.len() && !p.eat(',') && !p.eat(';') {
                return Err(p.bad("a comma is expected"));
            }
        }
    }

    /// Reads `x.0=1..64` or `y.0=x.0`, several separated by commas.
    ///
    /// # Errors
    /// Another form.
    pub fn parse_dynamic(text: &str) -> Result<Vec<Dynamic>> {
        let bad = || usage(format!("{text:?} names no symbolic size; write it as x.0=1..64 or y.0=x.0"));
        let place = |s: &str| -> Option<(String, usize)> {
            let (name, dim) = s.trim().rsplit_once('.')?;
            Some((name.to_string(), dim.parse().ok()?))
        };
        text.split(',')
            .map(|one| {
                let (left, right) = one.split_once('=').ok_or_else(bad)?;
                let (input, dim) = place(left).ok_or_else(bad)?;
                let range = match right.split_once("..") {
                    Some((lo, hi)) => {
                        let lo: i64 = lo.trim().parse().map_err(|_| bad())?;
                        let hi: i64 = hi.trim().trim_start_matches('=').parse().map_err(|_| bad())?;
                        if lo < 0 || hi < lo {
                            return Err(bad());
                        }
                        DynamicRange::Between(lo, hi)
                    }
                    None => {
                        let (other, dim) = place(right).ok_or_else(bad)?;
                        DynamicRange::Same(other, dim)
                    }
                };
                Ok(Dynamic { input, dim, range })
            })
            .collect()
    }
}

struct TypeParser<'t> {
    text: &'t str,
    at: usize,
    depth: u32,
}

impl<'t> TypeParser<'t> {
    fn bad(&self, what: &str) -> Error {
        usage(format!("{what} at {:?} in {:?}; write inputs as x=f32[2,3],n=4", &self.text[self.at..], self.text))
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn space(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += self.peek().map_or(1, char::len_utf8);
        }
    }

    fn eat(&mut self, c: char) -> bool {
        self.space();
        let found = self.peek() == Some(c);
        if found {
            self.at += c.len_utf8();
        }
        found
    }

    fn word(&mut self) -> &'t str {
        let rest = &self.text[self.at..];
        let end =
            rest.find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '.' | '-' | '+')).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn list(&mut self, close: char) -> Result<Vec<GivenValue>> {
        let mut out = Vec::new();
        while !self.eat(close) {
            out.push(self.value()?);
            if !self.eat(',') && self.peek() != Some(close) {
                return Err(self.bad("a comma is expected"));
            }
        }
        Ok(out)
    }

    fn value(&mut self) -> Result<GivenValue> {
        self.depth += 1;
        if self.depth > 32 {
            return Err(self.bad("nested too deep"));
        }
        let out = self.one_value();
        self.depth -= 1;
        out
    }

    fn one_value(&mut self) -> Result<GivenValue> {
        self.space();
        match self.peek() {
            Some('[') => {
                self.at += 1;
                return self.list(']').map(GivenValue::List);
            }
            Some('(') => {
                self.at += 1;
                return self.list(')').map(GivenValue::Tuple);
            }
            Some('{') => {
                self.at += 1;
                let mut out = Vec::new();
                while !self.eat('}') {
                    let key: Arc<str> = self.string()?;
                    if !self.eat(':') && !self.eat('=') {
                        return Err(self.bad("a colon is expected"));
                    }
                    out.push((key, self.value()?));
                    if !self.eat(',') && self.peek() != Some('}') {
                        return Err(self.bad("a comma is expected"));
                    }
                }
                return Ok(GivenValue::Dict(out));
            }
            Some('"' | '\'') => return self.string().map(GivenValue::Str),
            _ => {}
        }
        let word = self.word();
        match word {
            "None" => return Ok(GivenValue::None),
            "True" => return Ok(GivenValue::Number(Scalar::Bool(true))),
            "False" => return Ok(GivenValue::Number(Scalar::Bool(false))),
            _ => {}
        }
        let dtype = dtype_named(word);
        if let (Some(dtype), true) = (dtype, self.eat('[')) {
            let sizes = self.ints()?;
            let layout = if self.eat('[') {
                let strides = self.ints()?;
                if strides.len() != sizes.len() {
                    return Err(self.bad("sizes and strides differ in number"));
                }
                Layout::strided(&sizes, &strides, 0)
            } else {
                Layout::contiguous(&sizes)
            };
            return Ok(GivenValue::Tensor(dtype, layout));
        }
        if let Ok(i) = word.parse::<i64>() {
            return Ok(GivenValue::Number(Scalar::Int(i)));
        }
        match word.parse::<f64>() {
            Ok(x) => Ok(GivenValue::Number(Scalar::Float(x))),
            Err(_) => Err(self.bad("no type and no value")),
        }
    }

    fn ints(&mut self) -> Result<Vec<i64>> {
        let mut out = Vec::new();
        while !self.eat(']') {
            self.space();
            let word = self.word();
            let n: i64 = word.parse().map_err(|_| self.bad("a size is expected"))?;
            if !(0..1 << 40).contains(&n) {
                return Err(self.bad("a size out of range"));
            }
            out.push(n);
            if !self.eat(',') && self.peek() != Some(']') {
                return Err(self.bad("a comma is expected"));
            }
        }
        Ok(out)
    }

    fn string(&mut self) -> Result<Arc<str>> {
        self.space();
        let Some(q @ ('"' | '\'')) = self.peek() else {
            let word = self.word();
            return if word.is_empty() { Err(self.bad("a string is expected")) } else { Ok(word.into()) };
        };
        let rest = &self.text[self.at + 1..];
        let end = rest.find(q).ok_or_else(|| self.bad("a string without an end"))?;
        self.at += end + 2;
        Ok(rest[..end].into())
    }
}

/// An element type by restride's name, or PyTorch's.
pub fn dtype_named(word: &str) -> Option<DType> {
    let word = word.trim_start_matches("torch.");
    if let Some(d) = DType::from_name(word) {
        return Some(d);
    }
    let name = match word {
        "f16" | "half" => "float16",
        "f32" | "float" | "Float" => "float32",
        "f64" | "double" | "Double" => "float64",
        "bf16" | "BFloat16" => "bfloat16",
        "i8" | "Char" => "int8",
        "i16" | "short" | "Short" => "int16",
        "i32" | "int" | "Int" => "int32",
        "i64" | "long" | "Long" => "int64",
        "u8" | "Byte" => "uint8",
        "b8" | "Bool" => "bool",
        "c64" | "ComplexFloat" => "complex64",
        "c128" | "ComplexDouble" => "complex128",
        "Half" => "float16",
        _ => return None,
    };
    DType::from_name(name)
}

/// A number as an expression.
pub fn expr_of(s: Scalar) -> Expr {
    Expr::from(s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read() {
        let items = GivenInputs::parse_types("x=f32[2, 3],n=4,hs=[i64[1],None],d={\"k\": 0.5},s=\"a\"").unwrap();
        assert_eq!(items.len(), 5);
        assert_eq!(items[0], (Some("x".into()), GivenValue::Tensor(DType::F32, Layout::contiguous(&[2, 3]))));
        assert_eq!(items[1].1, GivenValue::Number(Scalar::Int(4)));
        assert!(matches!(&items[2].1, GivenValue::List(l) if l.len() == 2 && l[1] == GivenValue::None));
        assert!(GivenInputs::parse_types("x=f32[2").is_err());
        assert!(GivenInputs::parse_types("x=what").is_err());
        let d = GivenInputs::parse_dynamic("x.0=1..64,y.1=x.0").unwrap();
        assert_eq!(d[0].range, DynamicRange::Between(1, 64));
        assert_eq!(d[1].range, DynamicRange::Same("x".into(), 0));
        assert!(GivenInputs::parse_dynamic("x=3").is_err());
    }
}
