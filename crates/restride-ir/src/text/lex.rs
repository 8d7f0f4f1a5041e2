//! Tokens of the text format.

use crate::{Error, ErrorKind, Result};
use std::fmt;

/// Kinds of tokens. The text of a token is its slice of the source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tok {
    /// `aten.add.Tensor`, `f32`, `return`: letters, digits, `_` and `.`, not starting with a digit.
    Word,
    /// `12`, `1.5`, `1e-5`; the sign is a token of its own.
    Number,
    /// `2.0j`.
    Imaginary,
    /// `"…"`.
    Str,
    /// `%name` or `%"any name"`.
    Value,
    /// `@name` or `@"any name"`.
    Graph,
    /// A single character.
    Punct(char),
    /// The end of the text.
    End,
}

/// A token with its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub tok: Tok,
    pub start: usize,
    pub end: usize,
}

/// Reads tokens one by one; clones look ahead.
#[derive(Clone)]
pub(super) struct Lexer<'s> {
    pub src: &'s str,
    pos: usize,
}

/// Whether a name prints without quotes.
pub(super) fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(is_name_byte)
}

/// Whether a word prints without quotes where a word is expected.
pub(super) fn is_plain_word(word: &str) -> bool {
    is_plain_name(word) && !word.as_bytes()[0].is_ascii_digit()
}

fn is_name_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b'.'
}

impl<'s> Lexer<'s> {
    pub fn new(src: &'s str) -> Self {
        Lexer { src, pos: 0 }
    }

    /// The text of a token.
    pub fn text(&self, t: Token) -> &'s str {
        &self.src[t.start..t.end]
    }

    /// An error at a position, with line, column and the line's text.
    pub fn error(&self, at: usize, what: impl fmt::Display) -> Error {
        let before = &self.src[..at];
        let line = before.bytes().filter(|&b| b == b'\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |i| i + 1);
        let column = before[start..].chars().count() + 1;
        let whole = self.src[start..].lines().next().unwrap_or("");
        // Long lines are cut around the place.
        let skip = column.saturating_sub(60);
        let shown: String = whole.chars().skip(skip).take(100).collect();
        let lead = if skip > 0 { "…" } else { "" };
        let tail = if whole.chars().nth(skip + 100).is_some() { "…" } else { "" };
        Error::new(ErrorKind::File, format!("line {line}, column {column}: {what}, in `{lead}{}{tail}`", shown.trim()))
    }

    /// The next token; comments (`# …`, `// …`) and white space are skipped.
    pub fn next(&mut self) -> Result<Token> {
        let bytes = self.src.as_bytes();
        loop {
            match bytes.get(self.pos) {
                Some(b' ' | b'\t' | b'\r' | b'\n') => self.pos += 1,
                Some(b'#') => self.skip_line(),
                Some(b'/') if bytes.get(self.pos + 1) == Some(&b'/') => self.skip_line(),
                _ => break,
            }
        }
        let start = self.pos;
        let tok = match bytes.get(start) {
            None => Tok::End,
            Some(b'"') => {
                self.string()?;
                Tok::Str
            }
            Some(&sigil @ (b'%' | b'@')) => {
                self.pos += 1;
                if bytes.get(self.pos) == Some(&b'"') {
                    self.string()?;
                } else {
                    self.take_while(is_name_byte);
                    if self.pos == start + 1 {
                        return Err(self.error(start, format_args!("a name must follow `{}`", sigil as char)));
                    }
                }
                if sigil == b'%' { Tok::Value } else { Tok::Graph }
            }
            Some(b'0'..=b'9') => self.number(),
            Some(&b) if is_name_byte(b) => {
                self.take_while(is_name_byte);
                Tok::Word
            }
            Some(_) => {
                let c = self.src[start..].chars().next().unwrap_or('\0');
                self.pos += c.len_utf8();
                Tok::Punct(c)
            }
        };
        Ok(Token { tok, start, end: self.pos })
    }

    fn skip_line(&mut self) {
        self.take_while(|b| b != b'\n');
    }

    fn take_while(&mut self, test: impl Fn(u8) -> bool) {
        let rest = &self.src.as_bytes()[self.pos..];
        self.pos += rest.iter().position(|&b| !test(b)).unwrap_or(rest.len());
    }

    fn number(&mut self) -> Tok {
        let bytes = self.src.as_bytes();
        self.take_while(|b| b.is_ascii_digit());
        if bytes.get(self.pos) == Some(&b'.') {
            self.pos += 1;
            self.take_while(|b| b.is_ascii_digit());
        }
        if let Some(b'e' | b'E') = bytes.get(self.pos) {
            let sign = matches!(bytes.get(self.pos + 1), Some(b'+' | b'-')) as usize;
            if bytes.get(self.pos + 1 + sign).is_some_and(u8::is_ascii_digit) {
                self.pos += 1 + sign;
                self.take_while(|b| b.is_ascii_digit());
            }
        }
        if bytes.get(self.pos) == Some(&b'j') {
            self.pos += 1;
            return Tok::Imaginary;
        }
        Tok::Number
    }

    fn string(&mut self) -> Result<()> {
        let start = self.pos;
        self.pos += 1;
        loop {
            self.take_while(|b| b != b'"' && b != b'\\' && b != b'\n');
            match self.src.as_bytes().get(self.pos) {
                Some(b'"') => {
                    self.pos += 1;
                    return Ok(());
                }
                // The next character is part of the escape and may have several bytes.
                Some(b'\\') => match self.src[self.pos + 1..].chars().next() {
                    Some(c) if c != '\n' => self.pos += 1 + c.len_utf8(),
                    _ => return Err(self.error(start, "this string has no end")),
                },
                _ => return Err(self.error(start, "this string has no end")),
            }
        }
    }
}

/// Writes a string in quotes.
pub(super) fn quote(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Reads the output of [`quote`].
///
/// # Errors
/// The malformed part.
pub(super) fn unquote(text: &str) -> Result<String, String> {
    let inner = text.strip_prefix('"').and_then(|t| t.strip_suffix('"')).ok_or("not a string")?;
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some(c @ ('"' | '\\' | '\'')) => out.push(c),
            Some('u') => {
                let bad = "`\\u` needs a character's number, as in `\\u{e9}`";
                let hex: String = match chars.next() {
                    Some('{') => chars.by_ref().take_while(|&c| c != '}').collect(),
                    _ => return Err(bad.into()),
                };
                out.push(u32::from_str_radix(&hex, 16).ok().and_then(char::from_u32).ok_or(bad)?);
            }
            other => return Err(format!("unknown escape `\\{}`", other.unwrap_or(' '))),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(src: &str) -> Vec<(Tok, &str)> {
        let mut lexer = Lexer::new(src);
        let mut out = Vec::new();
        loop {
            let t = lexer.next().unwrap();
            if t.tok == Tok::End {
                return out;
            }
            out.push((t.tok, lexer.text(t)));
        }
    }

    #[test]
    fn tokens_and_comments() {
        let got = all("%a.1: f32 = aten.f(-1e-5, 2.0j) // c\n# d\n@\"x y\" 1.");
        let want = [
            (Tok::Value, "%a.1"),
            (Tok::Punct(':'), ":"),
            (Tok::Word, "f32"),
            (Tok::Punct('='), "="),
            (Tok::Word, "aten.f"),
            (Tok::Punct('('), "("),
            (Tok::Punct('-'), "-"),
            (Tok::Number, "1e-5"),
            (Tok::Punct(','), ","),
            (Tok::Imaginary, "2.0j"),
            (Tok::Punct(')'), ")"),
            (Tok::Graph, "@\"x y\""),
            (Tok::Number, "1."),
        ];
        assert_eq!(got, want);
    }

    #[test]
    fn strings_round_trip() {
        for text in ["", "a\"b\\c\nd\te\r", "é\u{0}\u{7f}'x", "%{}"] {
            let mut out = String::new();
            quote(&mut out, text);
            assert_eq!(unquote(&out).unwrap(), text);
            assert_eq!(all(&out).len(), 1, "{out}");
        }
        assert!(unquote("\"\\q\"").is_err() && unquote("\"\\u{110000}\"").is_err());
        assert!(Lexer::new("\"abc").next().is_err() && Lexer::new("\"abc\\").next().is_err());
    }

    #[test]
    fn errors_show_the_place() {
        let lexer = Lexer::new("ab\n  cd é ef\n");
        let e = lexer.error(11, "oops").to_string();
        assert_eq!(e, "line 2, column 8: oops, in `cd é ef`");
        let long = "x".repeat(500);
        assert!(Lexer::new(&long).error(300, "oops").to_string().chars().count() < 160);
    }
}
