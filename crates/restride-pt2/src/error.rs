//! The crate's error type: a message and its place in a file.

use std::fmt;

/// The kind of an error, for callers that react to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileErrorKind {
    /// The bytes break the format that they claim to be in.
    Malformed,
    /// The bytes are well formed but hold something unsupported.
    Unsupported,
    /// A size, count or depth beyond its limit.
    TooLarge,
    /// Something asked for by name is not in the file.
    Missing,
    /// The file system failed.
    Io,
}

/// An error of reading or writing an archive or a tensor file.
///
/// Prints as `place: place: message`, outermost place first; a place is an entry of an archive, a path into
/// a JSON document, a tensor's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pt2Error {
    kind: FileErrorKind,
    /// Outermost first.
    places: Vec<String>,
    message: String,
}

/// A result with this crate's error.
pub type Result<T> = std::result::Result<T, Pt2Error>;

impl Pt2Error {
    /// An error of the given kind.
    pub fn new(kind: FileErrorKind, message: impl Into<String>) -> Self {
        Self { kind, places: Vec::new(), message: message.into() }
    }

    /// The bytes break their format.
    pub fn malformed(message: impl Into<String>) -> Self {
        Self::new(FileErrorKind::Malformed, message)
    }

    /// Well formed but unsupported.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(FileErrorKind::Unsupported, message)
    }

    /// Beyond a limit.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(FileErrorKind::TooLarge, message)
    }

    /// Not in the file.
    pub fn missing(message: impl Into<String>) -> Self {
        Self::new(FileErrorKind::Missing, message)
    }

    /// A failed read or write.
    pub fn io(error: std::io::Error) -> Self {
        Self::new(FileErrorKind::Io, error.to_string())
    }

    /// Adds an outer place.
    #[must_use]
    pub fn at(mut self, place: impl Into<String>) -> Self {
        self.places.insert(0, place.into());
        self
    }

    /// The kind.
    pub fn kind(&self) -> FileErrorKind {
        self.kind
    }

    /// The message, without the place.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The places, outermost first.
    pub fn places(&self) -> &[String] {
        &self.places
    }
}

impl fmt::Display for Pt2Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for place in &self.places {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for Pt2Error {}

/// Adds a place to a result's error.
pub trait At {
    /// Adds an outer place to the error.
    #[must_use]
    fn at(self, place: impl FnOnce() -> String) -> Self;
}

impl<T> At for Result<T> {
    fn at(self, place: impl FnOnce() -> String) -> Self {
        self.map_err(|e| e.at(place()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_print_from_the_outside_in() {
        let e = Pt2Error::malformed("boom").at("nodes[3]").at("m.json");
        assert_eq!(e.to_string(), "m.json: nodes[3]: boom");
        assert_eq!(e.kind(), FileErrorKind::Malformed);
    }
}
