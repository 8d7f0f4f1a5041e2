//! Tokens, with Python's indentation.

use crate::source::SourceText;
use restride_ir::Result;
use std::sync::Arc;

/// Kinds of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PyTok {
    Name,
    Int,
    Float,
    Imaginary,
    Str,
    Op,
    Newline,
    Indent,
    Dedent,
    End,
}

/// A token with its place.
#[derive(Debug, Clone)]
pub(crate) struct PyToken {
    pub tok: PyTok,
    pub start: usize,
    pub end: usize,
    pub line: u32,
}

const OPS: [&str; 42] = [
    "**=", "//=", "<<=", ">>=", "...", "->", "**", "//", "<<", ">>", "<=", ">=", "==", "!=", "+=", "-=", "*=", "/=",
    "%=", "@=", "&=", "|=", "^=", "(", ")", "[", "]", "{", "}", ",", ":", ".", ";", "=", "+", "-", "*", "/", "%", "@",
    "<", ">",
];
const MORE_OPS: [&str; 4] = ["&", "|", "^", "~"];

/// Splits a source into tokens.
pub(crate) fn lex(source: &Arc<SourceText>) -> Result<Vec<PyToken>> {
    let mut lexer = PyLexer { source, bytes: source.text().as_bytes(), at: 0, line: 1, open: 0, out: Vec::new() };
    lexer.run()?;
    Ok(lexer.out)
}

struct PyLexer<'s> {
    source: &'s Arc<SourceText>,
    bytes: &'s [u8],
    at: usize,
    line: u32,
    /// Open brackets: no indentation inside of them.
    open: usize,
    out: Vec<PyToken>,
}

impl PyLexer<'_> {
    fn push(&mut self, tok: PyTok, start: usize) {
        self.out.push(PyToken { tok, start, end: self.at, line: self.line });
    }

    fn run(&mut self) -> Result<()> {
        let mut indents: Vec<usize> = vec![0];
        let mut fresh = true;
        loop {
            if fresh && self.open == 0 {
                let width = self.indentation();
                if self.blank() {
                    if !self.skip_line() {
                        break;
                    }
                    continue;
                }
                let here = self.at;
                if width > *indents.last().unwrap_or(&0) {
                    indents.push(width);
                    self.push(PyTok::Indent, here);
                } else {
                    while width < *indents.last().unwrap_or(&0) {
                        indents.pop();
                        self.push(PyTok::Dedent, here);
                    }
                }
                fresh = false;
            }
            match self.bytes.get(self.at) {
                None => break,
                Some(b' ' | b'\t' | b'\r') => self.at += 1,
                Some(b'\\') if self.bytes.get(self.at + 1) == Some(&b'\n') => {
                    self.at += 2;
                    self.line += 1;
                }
                Some(b'\n') => {
                    let start = self.at;
                    self.at += 1;
                    if self.open == 0 {
                        self.push(PyTok::Newline, start);
                        fresh = true;
                    }
                    self.line += 1;
                }
                Some(b'#') => self.comment(),
                Some(_) => self.token()?,
            }
        }
        let end = self.at;
        self.push(PyTok::Newline, end);
        for _ in 1..indents.len() {
            self.push(PyTok::Dedent, end);
        }
        self.push(PyTok::End, end);
        Ok(())
    }

    fn indentation(&mut self) -> usize {
        let mut width = 0;
        while let Some(b) = self.bytes.get(self.at) {
            match b {
                b' ' => width += 1,
                b'\t' => width = (width / 8 + 1) * 8,
                b'\r' => {}
                _ => break,
            }
            self.at += 1;
        }
        width
    }

    /// Whether nothing but a comment is left on the line.
    fn blank(&self) -> bool {
        matches!(self.bytes.get(self.at), None | Some(b'\n' | b'#'))
    }

    fn comment(&mut self) {
        while self.bytes.get(self.at).is_some_and(|b| *b != b'\n') {
            self.at += 1;
        }
    }

    /// Goes to the next line; false at the end.
    fn skip_line(&mut self) -> bool {
        self.comment();
        if self.at >= self.bytes.len() {
            return false;
        }
        self.at += 1;
        self.line += 1;
        true
    }

    fn token(&mut self) -> Result<()> {
        let start = self.at;
        let b = self.bytes[start];
        let name = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80;
        if let Some(quote) = self.string_start() {
            return self.string(start, quote);
        }
        if b.is_ascii_digit() || (b == b'.' && self.bytes.get(start + 1).is_some_and(u8::is_ascii_digit)) {
            return self.number(start);
        }
        if name(b) {
            while self.bytes.get(self.at).copied().is_some_and(name) {
                self.at += 1;
            }
            self.push(PyTok::Name, start);
            return Ok(());
        }
        let rest = &self.source.text()[start..];
        let Some(op) = OPS.iter().chain(&MORE_OPS).find(|op| rest.starts_with(**op)) else {
            let c = rest.chars().next().unwrap_or('\0');
            return Err(self.source.error(self.line, format!("the character {c:?} has no meaning here")));
        };
        match *op {
            "(" | "[" | "{" => self.open += 1,
            ")" | "]" | "}" => self.open = self.open.saturating_sub(1),
            _ => {}
        }
        self.at += op.len();
        self.push(PyTok::Op, start);
        Ok(())
    }

    /// The position of the quote of a string that starts here, after a prefix such as `r` or `b`.
    fn string_start(&self) -> Option<usize> {
        let quote = |at: usize| matches!(self.bytes.get(at), Some(b'"' | b'\''));
        if quote(self.at) {
            return Some(self.at);
        }
        let prefix = matches!(self.bytes.get(self.at), Some(b'r' | b'b' | b'u' | b'f' | b'R' | b'B'));
        (prefix && quote(self.at + 1)).then_some(self.at + 1)
    }

    fn string(&mut self, start: usize, quote: usize) -> Result<()> {
        let q = self.bytes[quote];
        let triple = self.bytes.get(quote + 1) == Some(&q) && self.bytes.get(quote + 2) == Some(&q);
        let line = self.line;
        self.at = quote + if triple { 3 } else { 1 };
        loop {
            match self.bytes.get(self.at) {
                None => return Err(self.source.error(line, "a string without an end")),
                Some(b'\n') if !triple => return Err(self.source.error(line, "a string without an end")),
                Some(b'\n') => {
                    self.line += 1;
                    self.at += 1;
                }
                Some(b'\\') => self.at += 2,
                Some(b) if *b == q => {
                    let ends =
                        !triple || self.bytes.get(self.at + 1) == Some(&q) && self.bytes.get(self.at + 2) == Some(&q);
                    self.at += if triple && ends { 3 } else { 1 };
                    if ends {
                        break;
                    }
                }
                Some(_) => self.at += 1,
            }
        }
        self.at = self.at.min(self.bytes.len());
        self.push(PyTok::Str, start);
        Ok(())
    }

    fn number(&mut self, start: usize) -> Result<()> {
        let radix = self.bytes[start] == b'0' && matches!(self.bytes.get(start + 1), Some(b'x' | b'b' | b'o'));
        if radix {
            self.at += 2;
            while self.bytes.get(self.at).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_') {
                self.at += 1;
            }
            self.push(PyTok::Int, start);
            return Ok(());
        }
        let mut float = false;
        while let Some(&b) = self.bytes.get(self.at) {
            let exponent_sign =
                matches!(b, b'+' | b'-') && matches!(self.bytes.get(self.at - 1), Some(b'e' | b'E')) && float;
            match b {
                b'0'..=b'9' | b'_' => {}
                b'.' | b'e' | b'E' => float = true,
                _ if exponent_sign => {}
                _ => break,
            }
            self.at += 1;
        }
        if matches!(self.bytes.get(self.at), Some(b'j')) {
            self.at += 1;
            self.push(PyTok::Imaginary, start);
            return Ok(());
        }
        self.push(if float { PyTok::Float } else { PyTok::Int }, start);
        Ok(())
    }
}

/// The text of a Python string literal, prefix and quotes included.
pub fn unescape(literal: &str) -> Option<String> {
    let quote = literal.find(['"', '\''])?;
    let raw = literal[..quote].contains(['r', 'R']);
    let body = &literal[quote..];
    let body = match body.get(..3) {
        Some(q @ ("\"\"\"" | "'''")) if body.len() >= 6 => body.strip_prefix(q)?.strip_suffix(q)?,
        _ => body.get(1..body.len().checked_sub(1)?)?,
    };
    if raw || !body.contains('\\') {
        return Some(body.to_string());
    }
    let mut out: Vec<u8> = Vec::with_capacity(body.len());
    let mut chars = body.chars().peekable();
    let push = |out: &mut Vec<u8>, c: char| out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    while let Some(c) = chars.next() {
        if c != '\\' {
            push(&mut out, c);
            continue;
        }
        let mut digits = |radix: u32, most: usize| -> Option<u32> {
            let mut n = 0u32;
            for k in 0..most {
                let Some(d) = chars.peek().and_then(|c| c.to_digit(radix)) else { return (k > 0).then_some(n) };
                n = n * radix + d;
                chars.next();
            }
            Some(n)
        };
        // TorchScript writes bytes that are no ASCII as octal escapes of UTF-8.
        if let Some(n) = digits(8, 3) {
            out.push(n as u8);
            continue;
        }
        match chars.next()? {
            'n' => out.push(b'\n'),
            't' => out.push(b'\t'),
            'r' => out.push(b'\r'),
            'a' => out.push(7),
            'b' => out.push(8),
            'f' => out.push(12),
            'v' => out.push(11),
            '\n' => {}
            'x' => {
                let mut n = 0;
                for _ in 0..2 {
                    n = n * 16 + chars.next()?.to_digit(16)?;
                }
                out.push(n as u8);
            }
            other => push(&mut out, other),
        }
    }
    Some(String::from_utf8_lossy(&out).into_owned())
}
