//! SourceText texts with their names, for errors and origins.

use crate::archive::debug::DebugSource;
use restride_ir::{Error, ErrorKind, Origin};
use std::sync::Arc;

/// A text with the name of its file.
#[derive(Debug)]
pub struct SourceText {
    name: Arc<str>,
    text: Arc<str>,
    /// The Python lines that the text was made from.
    debug: Option<DebugSource>,
}

impl SourceText {
    /// A text of a file.
    pub fn new(name: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> Arc<SourceText> {
        Arc::new(SourceText { name: name.into(), text: text.into(), debug: None })
    }

    /// A text of an archive, which says what Python it was made from.
    pub fn with_debug(name: impl Into<Arc<str>>, text: impl Into<Arc<str>>, debug: Option<DebugSource>) -> Arc<Self> {
        Arc::new(SourceText { name: name.into(), text: text.into(), debug })
    }

    /// File and line of the Python code that a line was made from, if the archive says.
    fn original(&self, line: u32) -> Option<(String, i64)> {
        let end = self.text.split_inclusive('\n').take(line as usize).map(str::len).sum();
        self.debug.as_ref()?.line(end)
    }

    /// The file's name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// A line's text, from 1.
    pub fn line(&self, line: u32) -> &str {
        self.text.lines().nth(line.saturating_sub(1) as usize).unwrap_or("").trim()
    }

    /// Whether the text is a part of restride's own library, whose places mean nothing to users.
    pub(crate) fn is_library(&self) -> bool {
        self.name.starts_with('<')
    }

    /// An error at a line: the text is damaged.
    pub fn error(&self, line: u32, what: impl Into<String>) -> Error {
        self.place(line, Error::new(ErrorKind::File, what))
    }

    /// Adds a line to an error that has none.
    pub fn place(&self, line: u32, mut error: Error) -> Error {
        if error.source.is_none() && error.node.is_none() && !self.is_library() {
            let shown: String = self.line(line).chars().take(120).collect();
            error.node = Some(if shown.is_empty() { "the end".into() } else { format!("`{shown}`") });
            error.source = Some(match self.original(line) {
                Some((file, original)) => format!("{}:{line}, from {file}:{original}", self.name),
                None => format!("{}:{line}", self.name),
            });
            error.code = (!shown.is_empty()).then(|| shown.into());
        }
        error
    }

    /// The origin of a call at a line.
    pub fn origin(&self, line: u32, key: u32) -> Origin {
        let trace = format!("  File \"{}\", line {line}, in forward\n    {}\n", self.name, self.line(line));
        Origin { key, stack_trace: Some(trace.into()), ..Origin::default() }
    }
}
