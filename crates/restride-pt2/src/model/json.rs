use crate::error::{Pt2Error, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;

/// Parses one of this module's types. Objects and lists may nest 128 deep, which is about seventeen subgraphs
/// in each other.
///
/// The bare words `NaN`, `Infinity` and `-Infinity`, which PyTorch 2.6 writes though JSON has no such numbers,
/// are understood. An error says where in the document it is.
pub fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    // The quick way first: it is right for nearly all files, and the paths of errors cost time.
    if let Ok(value) = serde_json::from_slice(bytes) {
        return Ok(value);
    }
    let text = quote_bare_floats(bytes);
    let mut reader = serde_json::Deserializer::from_slice(&text);
    let value: T = serde_path_to_error::deserialize(&mut reader).map_err(|e| {
        let path = e.path().to_string();
        let error = Pt2Error::malformed(e.into_inner().to_string());
        if path == "." { error } else { error.at(path) }
    })?;
    reader.end().map_err(|e| Pt2Error::malformed(e.to_string()))?;
    Ok(value)
}

/// Prints one of this module's types, the same bytes for the same value.
pub fn print<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|e| Pt2Error::malformed(e.to_string()))
}

/// Puts quotes around bare `NaN`, `Infinity` and `-Infinity` outside of strings.
fn quote_bare_floats(bytes: &[u8]) -> Cow<'_, [u8]> {
    let mut out: Vec<u8> = Vec::new();
    let mut copied = 0;
    let mut at = 0;
    let mut in_string = false;
    while let Some(&b) = bytes.get(at) {
        if in_string {
            match b {
                b'\\' => at += 1,
                b'"' => in_string = false,
                _ => {}
            }
        } else if b == b'"' {
            in_string = true;
        } else if let Some(word) = bare_float(&bytes[at..]) {
            out.extend_from_slice(&bytes[copied..at]);
            out.push(b'"');
            out.extend_from_slice(word);
            out.push(b'"');
            at += word.len();
            copied = at;
            continue;
        }
        at += 1;
    }
    if copied == 0 {
        return Cow::Borrowed(bytes);
    }
    out.extend_from_slice(&bytes[copied..]);
    Cow::Owned(out)
}

fn bare_float(bytes: &[u8]) -> Option<&'static [u8]> {
    [&b"NaN"[..], b"Infinity", b"-Infinity"].into_iter().find(|w| bytes.starts_with(w))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_words_are_quoted_outside_of_strings_only() {
        let text = br#"{"NaN": [NaN, -Infinity, Infinity, "a\"NaN"], "b": "\\", "c": NaN}"#;
        let expected = br#"{"NaN": ["NaN", "-Infinity", "Infinity", "a\"NaN"], "b": "\\", "c": "NaN"}"#;
        assert_eq!(&*quote_bare_floats(text), expected);
        assert!(matches!(quote_bare_floats(b"[1]"), Cow::Borrowed(_)));
        assert_eq!(&*quote_bare_floats(br#"["\"#), br#"["\"#);
    }
}
