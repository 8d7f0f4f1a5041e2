//! Strings: formats and methods.

use super::Evaluator;
use super::expressions::refused;
use crate::value::PyValue;
use restride_ir::{Expr, Result};

impl Evaluator<'_, '_> {
    /// A value as `str()` prints it.
    pub(crate) fn text(&self, value: &PyValue) -> String {
        match value {
            PyValue::Str(s) => s.to_string(),
            other => self.repr(other),
        }
    }

    /// A value as `repr()` prints it.
    fn repr(&self, value: &PyValue) -> String {
        let list = |items: &[PyValue]| items.iter().map(|v| self.repr(v)).collect::<Vec<_>>().join(", ");
        match value {
            PyValue::Str(s) => format!("'{s}'"),
            PyValue::Num(Expr::Float(x)) => python_float(x.0),
            PyValue::Num(e) => e.to_string(),
            PyValue::None => "None".into(),
            PyValue::List(l) => format!("[{}]", list(&l.borrow())),
            PyValue::Tuple(t, _) if t.len() == 1 => format!("({},)", self.repr(&t[0])),
            PyValue::Tuple(t, _) => format!("({})", list(t)),
            PyValue::Dict(d) => {
                let d = d.borrow();
                let items: Vec<String> =
                    d.iter().map(|(k, v)| format!("{}: {}", self.repr(&k.value()), self.repr(v))).collect();
                format!("{{{}}}", items.join(", "))
            }
            PyValue::Device(d) => d.to_string(),
            other => format!("<{}>", other.kind()),
        }
    }

    /// `format.format(*args)` of TorchScript: each `{}` takes the next argument.
    pub(crate) fn formatted(&self, format: &str, args: &[PyValue]) -> String {
        let mut out = String::new();
        let mut next = args.iter();
        let mut rest = format;
        while let Some(at) = rest.find('{') {
            out.push_str(&rest[..at]);
            let Some(end) = rest[at..].find('}') else { break };
            match next.next() {
                Some(v) => out.push_str(&self.text(v)),
                None => out.push_str(&rest[at..=at + end]),
            }
            rest = &rest[at + end + 1..];
        }
        out.push_str(rest);
        out
    }

    /// A method of a string, by name; `None` if there is none.
    pub(crate) fn string_method(&mut self, s: &str, name: &str, args: &[PyValue]) -> Result<Option<PyValue>> {
        let str_arg = |i: usize| match args.get(i) {
            Some(PyValue::Str(s)) => Ok(s.to_string()),
            _ => Err(refused(format!("{name} needs a string"))),
        };
        let trimmed = |f: fn(&str, &[char]) -> String| -> Result<PyValue> {
            let chars: Vec<char> = match args.first() {
                Some(PyValue::Str(c)) => c.chars().collect(),
                _ => vec![' ', '\t', '\n', '\r'],
            };
            Ok(PyValue::str(&f(s, &chars)))
        };
        Ok(Some(match name {
            "format" => PyValue::str(&self.formatted(s, args)),
            "upper" => PyValue::str(&s.to_uppercase()),
            "lower" => PyValue::str(&s.to_lowercase()),
            "capitalize" => {
                let mut chars = s.chars();
                let first: String = chars.next().map(|c| c.to_uppercase().collect()).unwrap_or_default();
                PyValue::str(&(first + &chars.as_str().to_lowercase()))
            }
            "startswith" => PyValue::bool(s.starts_with(&str_arg(0)?)),
            "endswith" => PyValue::bool(s.ends_with(&str_arg(0)?)),
            "find" => PyValue::int(s.find(&str_arg(0)?).map_or(-1, |i| i as i64)),
            "count" => PyValue::int(s.matches(&str_arg(0)?).count() as i64),
            "replace" => {
                let (from, to) = (str_arg(0)?, str_arg(1)?);
                if from.is_empty() || s.len().saturating_mul(to.len().max(1)) > super::MAX_ITEMS {
                    return Err(refused("replace of this length"));
                }
                PyValue::str(&s.replace(&from, &to))
            }
            "strip" => trimmed(|s, c| s.trim_matches(c).into())?,
            "lstrip" => trimmed(|s, c| s.trim_start_matches(c).into())?,
            "rstrip" => trimmed(|s, c| s.trim_end_matches(c).into())?,
            "split" => {
                let parts: Vec<PyValue> = match args.first() {
                    Some(PyValue::Str(by)) if !by.is_empty() => s.split(&**by).map(PyValue::str).collect(),
                    _ => s.split_whitespace().map(PyValue::str).collect(),
                };
                PyValue::list(parts)
            }
            "join" => {
                let items = args.first().and_then(PyValue::items).ok_or_else(|| refused("join needs a list"))?;
                PyValue::str(&items.iter().map(|v| self.text(v)).collect::<Vec<_>>().join(s))
            }
            "isdigit" => PyValue::bool(!s.is_empty() && s.bytes().all(|b| b.is_ascii_digit())),
            "isalpha" => PyValue::bool(!s.is_empty() && s.chars().all(char::is_alphabetic)),
            "isnumeric" => PyValue::bool(!s.is_empty() && s.chars().all(char::is_numeric)),
            "isupper" => PyValue::bool(s.chars().any(char::is_uppercase) && !s.chars().any(char::is_lowercase)),
            "islower" => PyValue::bool(s.chars().any(char::is_lowercase) && !s.chars().any(char::is_uppercase)),
            _ => return Ok(None),
        }))
    }
}

/// A float as Python prints it.
fn python_float(x: f64) -> String {
    if x.is_nan() {
        return "nan".into();
    }
    if x.is_infinite() {
        return if x > 0.0 { "inf".into() } else { "-inf".into() };
    }
    format!("{x:?}")
}
