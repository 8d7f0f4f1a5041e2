//! Symbols: names for numbers that are known at run time.

use std::cmp::Ordering;
use std::sync::Arc;

/// A name for a number that is known at run time.
#[derive(Clone, Debug)]
pub struct Symbol(Arc<SymbolData>);

#[derive(Debug)]
struct SymbolData {
    name: String,
    min: Option<i64>,
    max: Option<i64>,
}

impl Symbol {
    /// A symbol in an inclusive range; `None` is unbounded.
    pub fn new(name: impl Into<String>, min: Option<i64>, max: Option<i64>) -> Symbol {
        Symbol(Arc::new(SymbolData { name: name.into(), min, max }))
    }
    /// Its name (`s77`, `u0`, `zuf0`).
    pub fn name(&self) -> &str {
        &self.0.name
    }
    /// Smallest value, if bounded.
    pub fn min(&self) -> Option<i64> {
        self.0.min
    }
    /// Largest value, if bounded.
    pub fn max(&self) -> Option<i64> {
        self.0.max
    }
    /// Whether it is data-dependent: a run learns it from a result, not from the inputs' sizes.
    pub fn is_unbacked(&self) -> bool {
        self.0.name.starts_with('u') || self.0.name.starts_with("zu")
    }
    /// Whether it is a float.
    pub fn is_float(&self) -> bool {
        self.0.name.starts_with('z')
    }
}
impl PartialEq for Symbol {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}
impl Eq for Symbol {}
impl PartialOrd for Symbol {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Symbol {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.name.cmp(&other.0.name)
    }
}
impl std::hash::Hash for Symbol {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
    }
}
