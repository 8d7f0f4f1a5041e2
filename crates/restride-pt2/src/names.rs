//! Names that are unique in a graph or a file.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Names that are taken.
#[derive(Default)]
pub struct UniqueNames {
    taken: HashSet<Arc<str>>,
    /// For each hint that was taken, the number from which on names may be free: thousands of results may have one hint.
    next: HashMap<Arc<str>, usize>,
}

impl UniqueNames {
    /// Takes a name; false if it was taken.
    pub fn insert(&mut self, name: Arc<str>) -> bool {
        self.taken.insert(name)
    }

    /// The hint, or the first `hint_1`, `hint_2`, … that is not taken; takes the name.
    pub fn unique(&mut self, hint: &str) -> Arc<str> {
        let hint: Arc<str> = hint.into();
        if self.taken.insert(hint.clone()) {
            return hint;
        }
        let next = self.next.entry(hint.clone()).or_insert(1);
        loop {
            let name: Arc<str> = format!("{hint}_{next}").into();
            *next += 1;
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}

impl FromIterator<Arc<str>> for UniqueNames {
    fn from_iter<I: IntoIterator<Item = Arc<str>>>(names: I) -> Self {
        UniqueNames { taken: names.into_iter().collect(), next: HashMap::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::UniqueNames;

    #[test]
    fn the_first_free_number_is_taken() {
        let mut names: UniqueNames = ["a_2".into()].into_iter().collect();
        let made: Vec<String> =
            ["a", "a", "a", "a_1", "a", "b"].iter().map(|hint| names.unique(hint).to_string()).collect();
        assert_eq!(made, ["a", "a_1", "a_3", "a_1_1", "a_4", "b"]);
    }
}
