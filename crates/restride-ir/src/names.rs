//! Names that are unique in a graph or a file.

use foldhash::fast::FixedState;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::Write;
use std::sync::Arc;

/// Names given so far, to keep them unique: for each, the last number that was put behind it. Thousands of results may have one hint.
#[derive(Debug, Default)]
pub struct Names(HashMap<Arc<str>, u32, FixedState>);

impl Names {
    /// Reserves memory for `more` names.
    pub fn reserve(&mut self, more: usize) {
        self.0.reserve(more);
    }

    /// Takes a name; false if it was taken.
    pub fn take(&mut self, name: Arc<str>) -> bool {
        match self.0.entry(name) {
            Entry::Vacant(free) => {
                free.insert(0);
                true
            }
            Entry::Occupied(_) => false,
        }
    }

    /// The name; or the first of `name_1`, `name_2`, … that is not taken, if it is. Takes it.
    pub fn fresh(&mut self, name: &str) -> Arc<str> {
        let Some(&taken) = self.0.get(name) else {
            let name: Arc<str> = name.into();
            self.0.insert(name.clone(), 0);
            return name;
        };
        self.numbered(name, taken)
    }

    /// As [`Names::fresh`], sharing the memory of a name that is not taken.
    pub fn fresh_shared(&mut self, name: &Arc<str>) -> Arc<str> {
        match self.0.entry(name.clone()) {
            Entry::Vacant(free) => {
                free.insert(0);
                name.clone()
            }
            Entry::Occupied(known) => {
                let taken = *known.get();
                self.numbered(name, taken)
            }
        }
    }

    /// The first of `name_1`, `name_2`, … with a number above `n` that is not taken. Takes it.
    fn numbered(&mut self, name: &str, mut n: u32) -> Arc<str> {
        let mut candidate = String::with_capacity(name.len() + 6);
        loop {
            n += 1;
            candidate.clear();
            let _ = write!(candidate, "{name}_{n}");
            if !self.0.contains_key(candidate.as_str()) {
                let candidate: Arc<str> = candidate.into();
                self.0.insert(candidate.clone(), 0);
                if let Some(last) = self.0.get_mut(name) {
                    *last = n;
                }
                return candidate;
            }
        }
    }
}

impl FromIterator<Arc<str>> for Names {
    fn from_iter<I: IntoIterator<Item = Arc<str>>>(names: I) -> Self {
        Names(names.into_iter().map(|name| (name, 0)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::Names;

    #[test]
    fn the_first_free_number_is_taken() {
        let mut names: Names = ["a_2".into()].into_iter().collect();
        let made: Vec<String> =
            ["a", "a", "a", "a_1", "a", "b"].iter().map(|hint| names.fresh(hint).to_string()).collect();
        assert_eq!(made, ["a", "a_1", "a_3", "a_1_1", "a_4", "b"]);
    }
}
