//! Methods of strings, as TorchScript computes them: on ASCII letters.

use super::expressions::refused;
use super::{Evaluator, MAX_ITEMS};
use crate::value::PyValue;
use restride_ir::{Expr, Result};

/// What `strip` removes without being told.
const SPACES: &str = " \n\t\u{c}\u{b}\r";

fn list<'a>(parts: impl IntoIterator<Item = &'a str>) -> PyValue {
    PyValue::list(parts.into_iter().map(PyValue::str).collect())
}

impl Evaluator<'_, '_> {
    /// A method of a string, by name; `None` if there is none.
    pub(crate) fn string_method(&mut self, s: &str, name: &str, args: &[PyValue]) -> Result<Option<PyValue>> {
        let string = |i: usize| match args.get(i) {
            Some(PyValue::Str(s)) => Ok(s.to_string()),
            _ => Err(refused(format!("{name} needs a string"))),
        };
        let int = |e: &mut Self, i: usize, default: i64| match args.get(i) {
            Some(v) => e.known_int(v, "a number"),
            None => Ok(default),
        };
        let chars = || string(0).unwrap_or_else(|_| SPACES.into());
        let all = |f: fn(&char) -> bool| PyValue::bool(!s.is_empty() && s.chars().all(|c| f(&c)));
        if let Some(kind) = letters(name) {
            return Ok(Some(all(kind)));
        }
        Ok(Some(match name {
            "format" => self.formatted(s, args)?,
            "upper" => PyValue::str(&s.to_ascii_uppercase()),
            "lower" => PyValue::str(&s.to_ascii_lowercase()),
            "capitalize" => PyValue::str(&words(s, |first| first)),
            "title" => PyValue::str(&words(s, |_| true)),
            "swapcase" => PyValue::str(&s.chars().map(swapped).collect::<String>()),
            "isupper" => PyValue::bool(has(s, char::is_ascii_uppercase) && !has(s, char::is_ascii_lowercase)),
            "islower" => PyValue::bool(has(s, char::is_ascii_lowercase) && !has(s, char::is_ascii_uppercase)),
            "startswith" | "endswith" | "find" | "rfind" | "index" | "rindex" | "count" => {
                let wanted = string(0)?;
                let (start, end) = (int(self, 1, 0)?, int(self, 2, -1)?);
                let Some((from, part)) = bounded(s, start, end) else {
                    return Ok(Some(if name.ends_with("with") { PyValue::bool(false) } else { missing(name)? }));
                };
                let at = match name {
                    "startswith" => return Ok(Some(PyValue::bool(part.starts_with(&wanted)))),
                    "endswith" => return Ok(Some(PyValue::bool(part.ends_with(&wanted)))),
                    "count" => return Ok(Some(PyValue::int(part.matches(&wanted).count() as i64))),
                    "find" | "index" => part.find(&wanted),
                    _ => part.rfind(&wanted),
                };
                match at {
                    Some(at) => PyValue::int((from + at) as i64),
                    None => missing(name)?,
                }
            }
            "replace" => {
                let (from, to, most) = (string(0)?, string(1)?, int(self, 2, -1)?);
                if from.is_empty() || s.len().saturating_mul(to.len().max(1)) > MAX_ITEMS {
                    return Err(refused("replace of this length"));
                }
                PyValue::str(&s.replacen(&from, &to, usize::try_from(most).unwrap_or(usize::MAX)))
            }
            "strip" => PyValue::str(s.trim_matches(|c| chars().contains(c))),
            "lstrip" => PyValue::str(s.trim_start_matches(|c| chars().contains(c))),
            "rstrip" => PyValue::str(s.trim_end_matches(|c| chars().contains(c))),
            "split" | "rsplit" => {
                let most = usize::try_from(int(self, 1, -1)?).map_or(usize::MAX, |n| n.saturating_add(1));
                match (args.first(), name) {
                    (None | Some(PyValue::None), "split") => {
                        if most != usize::MAX {
                            return Err(refused("split at blanks of a limited number"));
                        }
                        list(s.split_ascii_whitespace())
                    }
                    (_, "split") => list(s.splitn(most, &separator(&string(0)?)?)),
                    (by, _) => {
                        let by = if by.is_none() { " ".into() } else { string(0)? };
                        let mut parts: Vec<&str> = s.rsplitn(most, &separator(&by)?).collect();
                        parts.reverse();
                        list(parts)
                    }
                }
            }
            "splitlines" => {
                // Ends that are kept are parts of their own.
                let keep = matches!(args.first(), Some(PyValue::Num(Expr::Bool(true))));
                let mut parts = Vec::new();
                for line in s.split_inclusive(['\n', '\r']) {
                    let (text, end) = line.split_at(line.trim_end_matches(['\n', '\r']).len());
                    parts.push(text);
                    parts.extend((keep && !end.is_empty()).then_some(end));
                }
                list(parts)
            }
            "partition" | "rpartition" => {
                let by = separator(&string(0)?)?;
                let parts = if name == "partition" { s.split_once(&by) } else { s.rsplit_once(&by) };
                let parts = match (parts, name) {
                    (Some((a, b)), _) => [a, &by, b],
                    (None, "partition") => [s, "", ""],
                    (None, _) => ["", "", s],
                };
                PyValue::tuple(parts.map(PyValue::str).to_vec())
            }
            "join" => {
                let items = args.first().and_then(PyValue::items).ok_or_else(|| refused("join needs a list"))?;
                let mut parts = Vec::new();
                for item in &items {
                    let PyValue::Str(part) = item else { return Err(refused(format!("join of {}", item.kind()))) };
                    parts.push(part.to_string());
                }
                PyValue::str(&parts.join(s))
            }
            "ljust" | "rjust" | "center" | "zfill" => {
                let width = int(self, 0, 0)?;
                let space = usize::try_from(width).unwrap_or(0).saturating_sub(s.chars().count());
                if space > MAX_ITEMS {
                    return Err(refused(format!("{name} to this width")));
                }
                let fill = if name == "zfill" { "0".into() } else { string(1).unwrap_or_else(|_| " ".into()) };
                let (sign, digits) = match name == "zfill" && s.starts_with(['+', '-']) {
                    true => s.split_at(1),
                    false => ("", s),
                };
                let left = match name {
                    "ljust" => 0,
                    "center" => space / 2,
                    _ => space,
                };
                PyValue::str(&format!("{sign}{}{digits}{}", fill.repeat(left), fill.repeat(space - left)))
            }
            _ => return Ok(None),
        }))
    }
}

/// Which characters a method asks for.
fn letters(name: &str) -> Option<fn(&char) -> bool> {
    Some(match name {
        "isdigit" | "isnumeric" | "isdecimal" => char::is_ascii_digit,
        "isalpha" => char::is_ascii_alphabetic,
        "isalnum" => char::is_ascii_alphanumeric,
        "isspace" => char::is_ascii_whitespace,
        _ => return None,
    })
}

fn has(s: &str, f: fn(&char) -> bool) -> bool {
    s.chars().any(|c| f(&c))
}

fn swapped(c: char) -> char {
    if c.is_ascii_uppercase() { c.to_ascii_lowercase() } else { c.to_ascii_uppercase() }
}

/// The string in small letters, with large ones where words start that are `chosen`, by whether they start the string.
fn words(s: &str, chosen: fn(bool) -> bool) -> String {
    let mut out = String::new();
    let mut inside = false;
    for c in s.chars() {
        let large = !inside && chosen(out.is_empty());
        out.push(if large { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() });
        inside = c.is_ascii_alphabetic();
    }
    out
}

/// The part of a string between two positions, with its start. Negative positions count from the end, at which -1 is.
fn bounded(s: &str, start: i64, end: i64) -> Option<(usize, &str)> {
    let n = s.len() as i64;
    let start = if start < 0 { (n + start).max(0) } else { start };
    let end = if end < 0 { (n + end + 1).max(0) } else { end.min(n) };
    let part = s.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)?;
    Some((start as usize, part))
}

/// What a search gives that finds nothing.
fn missing(name: &str) -> Result<PyValue> {
    match name {
        "count" => Ok(PyValue::int(0)),
        "find" | "rfind" => Ok(PyValue::int(-1)),
        _ => Err(refused("ValueError: substring not found")),
    }
}

fn separator(by: &str) -> Result<String> {
    if by.is_empty() { Err(refused("ValueError: empty separator")) } else { Ok(by.into()) }
}
