//! Tokens of an expression, with their positions.

use crate::error::{Pt2Error, Result};

#[derive(Debug, Clone, PartialEq)]
pub enum ExprToken<'t> {
    Name(&'t str),
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

/// The tokens of a text and the byte offset of each; an error comes with its offset.
pub fn tokenize(text: &str) -> std::result::Result<Vec<(usize, ExprToken<'_>)>, (usize, Pt2Error)> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let at = text.len() - rest.len();
        let (token, len) = token(rest).map_err(|e| (at, e))?;
        tokens.push((at, token));
        rest = rest[len..].trim_start();
    }
    Ok(tokens)
}

/// The first token of a text, which begins with one, and its length in bytes.
fn token(text: &str) -> Result<(ExprToken<'_>, usize)> {
    let digit = |c: char| c.is_ascii_digit();
    let first = text.chars().next().unwrap_or('\0');
    if first == '_' || first.is_alphabetic() {
        let len = text.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(text.len());
        return Ok((ExprToken::Name(&text[..len]), len));
    }
    if digit(first) || first == '.' && text[1..].starts_with(digit) {
        return number(text);
    }
    if first == '\'' || first == '"' {
        return string(text, first);
    }
    let operator = OPERATORS.iter().find(|op| text.starts_with(**op));
    let operator = operator.ok_or_else(|| Pt2Error::unsupported(format!("unexpected character {first:?}")))?;
    Ok((ExprToken::Op(operator), operator.len()))
}

fn number(text: &str) -> Result<(ExprToken<'_>, usize)> {
    let end = |from: usize, part: fn(char) -> bool| {
        text[from..].find(|c| !part(c)).map_or(text.len(), |length| from + length)
    };
    let mantissa = end(0, |c| c.is_ascii_digit() || c == '.');
    let mut at = mantissa;
    if text[at..].starts_with(['e', 'E']) {
        let digits = at + 1 + usize::from(text[at + 1..].starts_with(['+', '-']));
        let exponent = end(digits, |c| c.is_ascii_digit());
        at = if exponent > digits { exponent } else { at };
    }
    let word = &text[..at];
    let token = if at > mantissa || word.contains('.') {
        word.parse().ok().map(ExprToken::Float)
    } else {
        word.parse().ok().map(ExprToken::Int)
    };
    Ok((token.ok_or_else(|| Pt2Error::too_large(format!("the number {word} does not fit")))?, at))
}

fn string(text: &str, quote: char) -> Result<(ExprToken<'_>, usize)> {
    let mut out = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            c if c == quote => return Ok((ExprToken::Str(out), at + 1)),
            '\\' => match chars.next() {
                Some((_, c @ ('\\' | '\'' | '"'))) => out.push(c),
                Some((_, 'n')) => out.push('\n'),
                Some((_, 't')) => out.push('\t'),
                _ => return Err(Pt2Error::unsupported("unsupported escape in a string")),
            },
            c => out.push(c),
        }
    }
    Err(Pt2Error::malformed("string without an end"))
}
