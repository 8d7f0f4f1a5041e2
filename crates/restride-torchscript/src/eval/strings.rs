//! Texts of values, as TorchScript prints them: other than Python's for floats, strings in lists, and formats.

use super::Evaluator;
use super::expressions::refused;
use crate::value::PyValue;
use restride_ir::{Expr, Result};

/// What stands for a text that holds numbers from data.
fn unknown_text() -> PyValue {
    PyValue::Poison("the text of a value that only a run knows".into())
}

impl Evaluator<'_, '_> {
    /// A value as `str()` prints it; `None` if only a run knows it.
    pub(crate) fn text(&mut self, value: &PyValue) -> Result<Option<String>> {
        let mut list = |items: &[PyValue], open: &str, close: &str| -> Result<Option<String>> {
            let parts = items.iter().map(|v| self.text(v)).collect::<Result<Option<Vec<String>>>>()?;
            Ok(parts.map(|p| format!("{open}{}{close}", p.join(", "))))
        };
        Ok(Some(match value {
            PyValue::Str(s) => s.to_string(),
            PyValue::Num(Expr::Float(x)) => printed_float(x.0),
            PyValue::Num(Expr::Bool(b)) => if *b { "True" } else { "False" }.into(),
            PyValue::Num(Expr::Int(i)) => i.to_string(),
            PyValue::Num(e) if e.is_learnt() || e.is_float() || e.is_bool() => return Ok(None),
            PyValue::Num(_) => self.known_int(value, "a number in a text")?.to_string(),
            PyValue::None => "None".into(),
            PyValue::List(l) => return list(&l.borrow().clone(), "[", "]"),
            PyValue::Tuple(t, _) => return list(t, "(", if t.len() == 1 { ",)" } else { ")" }),
            PyValue::Dict(d) => {
                let items: Vec<(PyValue, PyValue)> = d.borrow().iter().map(|(k, v)| (k.value(), v.clone())).collect();
                let mut parts = Vec::new();
                for (k, v) in &items {
                    let (Some(k), Some(v)) = (self.text(k)?, self.text(v)?) else { return Ok(None) };
                    parts.push(format!("{k}: {v}"));
                }
                format!("{{{}}}", parts.join(", "))
            }
            PyValue::Device(d) => d.to_string(),
            PyValue::Tensor(_) | PyValue::Rows(_) | PyValue::Poison(_) => return Ok(None),
            other => format!("<{}>", other.kind()),
        }))
    }

    /// A value as `str()` prints it, as a value.
    pub(crate) fn text_value(&mut self, value: &PyValue) -> Result<PyValue> {
        Ok(self.text(value)?.map_or_else(unknown_text, |s| PyValue::str(&s)))
    }

    /// `format.format(*args)`: each `{}` takes the next argument, and all else stays.
    pub(crate) fn formatted(&mut self, format: &str, args: &[PyValue]) -> Result<PyValue> {
        let mut out = String::new();
        let mut next = args.iter();
        let mut rest = format;
        while let Some(at) = rest.find("{}") {
            let Some(value) = next.next() else {
                return Err(refused(format!("Too few arguments for format string: {format}")));
            };
            let Some(text) = self.text(value)? else { return Ok(unknown_text()) };
            out.push_str(&rest[..at]);
            out.push_str(&text);
            rest = &rest[at + 2..];
        }
        out.push_str(rest);
        Ok(PyValue::str(&out))
    }

    /// `format % args`
    pub(crate) fn percent_formatted(&mut self, format: &str, args: &[PyValue]) -> Result<PyValue> {
        let mut out = String::new();
        let mut next = args.iter();
        let mut rest = format;
        while let Some(at) = rest.find('%') {
            out.push_str(&rest[..at]);
            let Some(key) = rest[at + 1..].chars().next() else { return Err(refused("Incomplete format specifier")) };
            rest = &rest[at + 1 + key.len_utf8()..];
            if key == '%' {
                out.push('%');
                continue;
            }
            let value = next.next().ok_or_else(|| refused("Too few arguments for format string"))?;
            let Some(text) = self.printed_as(key, value)? else { return Ok(unknown_text()) };
            out.push_str(&text);
        }
        if next.next().is_some() {
            return Err(refused("Too many arguments for format string"));
        }
        out.push_str(rest);
        Ok(PyValue::str(&out))
    }

    /// A value by the specifier `%key`; `None` if only a run knows it.
    fn printed_as(&mut self, key: char, value: &PyValue) -> Result<Option<String>> {
        if key == 's' {
            return self.text(value);
        }
        if !matches!(key, 'd' | 'i' | 'e' | 'E' | 'f' | 'F' | 'c') {
            return Err(refused(format!("The specifier %{key} is not supported in TorchScript format strings")));
        }
        if let (PyValue::Str(s), 'c') = (value, key) {
            return Ok(Some(s.to_string()));
        }
        let e = match value {
            PyValue::Num(e) if !e.is_bool() => e,
            other => {
                return Err(refused(format!("%{key} requires a number for formatting, but got {}", other.kind())));
            }
        };
        let number = match e {
            e if e.is_learnt() => return Ok(None),
            e if e.is_float() => match e.constant() {
                Some(n) => n,
                None => return Ok(None),
            },
            _ => restride_ir::Scalar::Int(self.known_int(value, "a number in a text")?),
        };
        let single = f64::from(number.as_f64() as f32);
        Ok(Some(match key {
            'd' | 'i' if e.is_float() => (number.as_f64() as i32).to_string(),
            'd' | 'i' => number.as_i64().to_string(),
            'f' | 'F' => format!("{single:.6}"),
            'c' => char::from_u32(number.as_i64() as u32).map(String::from).unwrap_or_default(),
            _ => {
                let text = scientific(single, 6);
                if key == 'E' { text.to_uppercase() } else { text }
            }
        }))
    }
}

/// `%e` of C, with `digits` digits after the point.
fn scientific(x: f64, digits: usize) -> String {
    let text = format!("{x:.digits$e}");
    let Some((mantissa, exponent)) = text.split_once('e') else { return text };
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(e) => ('-', e),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{exponent:0>2}")
}

/// A float as TorchScript prints it: whole numbers with a point, others with 17 significant digits.
fn printed_float(x: f64) -> String {
    if x.is_nan() {
        return if x.is_sign_negative() { "-nan" } else { "nan" }.into();
    }
    if x.is_infinite() {
        return if x > 0.0 { "inf" } else { "-inf" }.into();
    }
    if x == x.trunc() && x.abs() < 1e10 {
        return format!("{x:.0}.");
    }
    let text = scientific(x, 16);
    let Some((mantissa, exponent)) = text.split_once('e') else { return text };
    let trimmed = |s: &str| s.trim_end_matches('0').trim_end_matches('.').to_string();
    match exponent.parse::<i32>() {
        Ok(e @ -4..17) => trimmed(&format!("{x:.*}", (16 - e) as usize)),
        _ => format!("{}e{exponent}", trimmed(mantissa)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_have_seventeen_digits() {
        let cases: [(f64, &str); 8] = [
            (2.0, "2."),
            (-0.0, "-0."),
            (2.5, "2.5"),
            (0.1, "0.10000000000000001"),
            (1e10, "10000000000"),
            (1.5e-7, "1.4999999999999999e-07"),
            (1e300, "1.0000000000000001e+300"),
            (123456.789, "123456.789"),
        ];
        for (x, text) in cases {
            assert_eq!(printed_float(x), text);
        }
        assert_eq!(scientific(0.0, 6), "0.000000e+00");
    }
}
