//! A map from bytes to values, kept as runs of bytes with equal values.

use std::collections::BTreeMap;
use std::ops::Range;

/// From the first byte of a run: the byte after the run, and the value. Neighbouring runs have different values.
#[derive(Clone, Debug)]
pub struct IntervalMap<T>(BTreeMap<i64, (i64, T)>);

impl<T> Default for IntervalMap<T> {
    fn default() -> Self {
        IntervalMap(BTreeMap::new())
    }
}

impl<T: Copy + PartialEq> IntervalMap<T> {
    /// Whether a byte of a range has a value.
    pub fn touches(&self, range: &Range<i64>) -> bool {
        self.0.range(..range.end).next_back().is_some_and(|(_, x)| x.0 > range.start) && !range.is_empty()
    }

    /// Removes a range, and returns its runs in order.
    pub fn take(&mut self, range: &Range<i64>) -> Vec<(Range<i64>, T)> {
        if range.is_empty() {
            return Vec::new();
        }
        let mut starts = Vec::new();
        for (&start, x) in self.0.range(..range.end).rev() {
            if x.0 <= range.start {
                break;
            }
            starts.push(start);
        }
        let mut out = Vec::with_capacity(starts.len());
        for start in starts.into_iter().rev() {
            let Some((end, what)) = self.0.remove(&start) else { continue };
            if start < range.start {
                self.0.insert(start, (range.start, what));
            }
            if end > range.end {
                self.0.insert(range.end, (end, what));
            }
            out.push((start.max(range.start)..end.min(range.end), what));
        }
        out
    }

    /// Sets the value of a range, and returns the runs that it replaces.
    pub fn set(&mut self, range: &Range<i64>, what: T) -> Vec<(Range<i64>, T)> {
        let before = self.take(range);
        if range.is_empty() {
            return before;
        }
        let (mut from, mut to) = (range.start, range.end);
        if let Some((&start, &(end, other))) = self.0.range(..from).next_back()
            && end == from
            && other == what
        {
            self.0.remove(&start);
            from = start;
        }
        if let Some(&(end, other)) = self.0.get(&to)
            && other == what
        {
            self.0.remove(&to);
            to = end;
        }
        self.0.insert(from, (to, what));
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_byte_by_byte() {
        let mut below = crate::draws(5);
        for _ in 0..300 {
            let mut spans = IntervalMap::default();
            let mut model: Vec<Option<i64>> = vec![None; 40];
            for _ in 0..30 {
                let from = below(40);
                let range = from..from + below(41 - from);
                let own = range.start as usize..range.end as usize;
                assert_eq!(
                    spans.touches(&range),
                    model[own.clone()].iter().any(Option::is_some),
                    "{range:?} {spans:?}"
                );
                let mut was = vec![None; own.len()];
                let what = (below(3) > 0).then(|| below(3));
                let before = match what {
                    Some(what) => spans.set(&range, what),
                    None => spans.take(&range),
                };
                for (r, what) in before {
                    r.for_each(|b| was[(b - from) as usize] = Some(what));
                }
                assert_eq!(was, model[own.clone()]);
                model[own].fill(what);
                for pair in spans.0.iter().collect::<Vec<_>>().windows(2) {
                    assert!(pair[0].1.0 < *pair[1].0 || (pair[0].1.0 == *pair[1].0 && pair[0].1.1 != pair[1].1.1));
                }
            }
        }
    }
}
