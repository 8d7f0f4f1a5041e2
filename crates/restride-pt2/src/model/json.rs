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
    // The words are rare: the text is taken as it is first.
    let error = match serde_json::from_slice(bytes) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    match quote_bare_floats(bytes) {
        Cow::Borrowed(text) => Err(placed(&error, text)),
        Cow::Owned(text) => serde_json::from_slice(&text).map_err(|e| placed(&e, &text)),
    }
}

/// The error with the path of the member at which it was found.
fn placed(error: &serde_json::Error, text: &[u8]) -> Pt2Error {
    let lines = text.split_inclusive(|b| *b == b'\n').take(error.line().saturating_sub(1));
    let path = path_at(text, lines.map(<[u8]>::len).sum::<usize>() + error.column());
    let error = Pt2Error::malformed(error.to_string());
    if path.is_empty() { error } else { error.at(path) }
}

/// The keys and indices that lead to an offset of a JSON text: `graph.nodes[3].arg`.
fn path_at(text: &[u8], offset: usize) -> String {
    enum Level<'a> {
        /// The key of the current member, from its colon to the next comma.
        Object(Option<&'a [u8]>),
        /// The index of the current element.
        List(usize),
    }
    let text = &text[..offset.min(text.len())];
    let (mut levels, mut string, mut at) = (Vec::new(), &text[..0], 0);
    while let Some(&b) = text.get(at) {
        at += 1;
        match (b, levels.last_mut()) {
            (b'"', _) => {
                let start = at;
                while text.get(at).is_some_and(|b| *b != b'"') {
                    at += if text[at] == b'\\' { 2 } else { 1 };
                }
                at = at.min(text.len());
                string = &text[start..at];
                at += 1;
            }
            (b'{', _) => levels.push(Level::Object(None)),
            (b'[', _) => levels.push(Level::List(0)),
            (b'}' | b']', _) => drop(levels.pop()),
            (b':', Some(Level::Object(key))) => *key = Some(string),
            (b',', Some(Level::Object(key))) => *key = None,
            (b',', Some(Level::List(index))) => *index += 1,
            _ => {}
        }
    }
    let mut path = String::new();
    for level in levels {
        match level {
            Level::Object(None) => {}
            Level::Object(Some(key)) => {
                let dot = if path.is_empty() { "" } else { "." };
                path += &format!("{dot}{}", String::from_utf8_lossy(key));
            }
            Level::List(index) => path += &format!("[{index}]"),
        }
    }
    path
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

    #[test]
    fn paths_lead_to_offsets() {
        let text = br#"{"a,": [1, {"b\"}": [[], {"c": 2, "d"#;
        let at = |marker: &[u8]| {
            let offset = text.windows(marker.len()).position(|w| w == marker).expect("a marker");
            path_at(text, offset + marker.len())
        };
        assert_eq!(at(b"{"), "");
        assert_eq!(at(b"[1"), "a,[0]");
        assert_eq!(at(b"b"), "a,[1]");
        assert_eq!(at(br#"b\"}": "#), r#"a,[1].b\"}"#);
        assert_eq!(at(b"[]"), r#"a,[1].b\"}[0]"#);
        assert_eq!(at(b": 2"), r#"a,[1].b\"}[1].c"#);
        assert_eq!(at(b"d"), r#"a,[1].b\"}[1]"#);
        for n in 0..text.len() + 2 {
            path_at(text, n);
            path_at(br#"{"\"#, n);
        }
    }

    #[test]
    fn errors_on_later_lines_have_their_paths() {
        let text = b"{\n \"a\": 1,\n \"b\": [1, \"two\"], \"c\": NaN}\n";
        let error = parse::<std::collections::BTreeMap<String, serde_json::Value>>(&text[..24]).unwrap_err();
        assert_eq!(error.places(), ["b[1]"], "{error}");
        type Lists = std::collections::BTreeMap<String, Vec<i64>>;
        assert_eq!(parse::<Lists>(text).unwrap_err().places(), ["a"]);
        assert_eq!(parse::<Lists>(b"{\"b\": [1,\n\"two\"]}").unwrap_err().places(), ["b[1]"]);
    }
}
