//! Facts about memory: cells that hold a value.

use restride_ir::{BufferId, Id, Layout, Place, Table, ValueId};
use restride_tensor::{Overlap, overlap_bytes};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Cells that were written after a fact began.
#[derive(Clone, Debug)]
pub struct Hole {
    layout: Layout,
    element: usize,
    /// Step of the write.
    pub step: usize,
}

/// The cells of a layout hold a value, except in holes.
#[derive(Clone, Debug)]
pub struct Fact {
    /// The value.
    pub value: ValueId,
    /// Cells, in elements of the value's type.
    pub layout: Layout,
    /// Size of an element in bytes.
    pub element: usize,
    /// Cells that no longer hold the value.
    pub holes: Vec<Hole>,
}

/// Overlap of a write with a layout.
fn meet(a: &Layout, a_element: usize, b: &Layout, b_element: usize) -> Overlap {
    overlap_bytes(a, a_element, b, b_element)
}

impl Fact {
    /// Holes that may touch a layout.
    pub fn holes_in(&self, layout: &Layout, element: usize) -> Vec<Hole> {
        let touches = |h: &&Hole| meet(&h.layout, h.element, layout, element) != Overlap::Disjoint;
        self.holes.iter().filter(touches).cloned().collect()
    }

    /// Holes that are not provably inside of a region.
    pub fn holes_outside(&self, region: &Layout, element: usize) -> Vec<Hole> {
        let inside =
            |h: &&Hole| !matches!(meet(&h.layout, h.element, region, element), Overlap::Same | Overlap::Inside);
        self.holes.iter().filter(inside).cloned().collect()
    }
}

/// Facts of one buffer by position, in classes of similar length. A fact that touches a range begins in the range, or
/// before it by at most the length of its class.
#[derive(Clone, Default)]
struct Extents {
    classes: BTreeMap<u32, BTreeSet<(i64, usize)>>,
}

impl Extents {
    fn class(range: &Range<i64>) -> u32 {
        i64::BITS - (range.end - range.start).max(0).leading_zeros()
    }
    fn insert(&mut self, range: &Range<i64>, fact: usize) {
        self.classes.entry(Self::class(range)).or_default().insert((range.start, fact));
    }
    fn remove(&mut self, range: &Range<i64>, fact: usize) {
        if let Some(class) = self.classes.get_mut(&Self::class(range)) {
            class.remove(&(range.start, fact));
        }
    }
    /// All facts that may touch a range, and some that do not.
    fn near(&self, range: &Range<i64>) -> Vec<usize> {
        let mut out = Vec::new();
        for (&class, facts) in &self.classes {
            let reach = 1i64.checked_shl(class).unwrap_or(i64::MAX);
            let from = range.start.saturating_sub(reach);
            out.extend(facts.range((from, 0)..(range.end.max(range.start), 0)).map(|f| f.1));
        }
        out.sort_unstable();
        out
    }
}

/// Bytes that a layout reaches.
fn bytes(layout: &Layout, element: usize) -> Range<i64> {
    let cells = layout.cell_range();
    cells.start.saturating_mul(element as i64)..cells.end.saturating_mul(element as i64)
}

/// Facts of all buffers.
#[derive(Default)]
pub struct KnownMemory {
    facts: Vec<Option<(BufferId, Fact)>>,
    /// Unused positions of `facts`.
    free: Vec<usize>,
    extents: Vec<Extents>,
    /// Facts of each value, oldest first.
    homes: Table<ValueId, Vec<usize>>,
}

impl KnownMemory {
    /// No facts, for `buffers` buffers.
    pub fn new(buffers: usize) -> KnownMemory {
        KnownMemory { extents: vec![Extents::default(); buffers], ..KnownMemory::default() }
    }

    /// A write to a place makes holes in the facts that it may touch.
    pub fn write(&mut self, place: &Place, element: usize, step: usize) {
        for at in self.extents[place.buffer.index()].near(&bytes(&place.layout, element)) {
            let Some((_, fact)) = &mut self.facts[at] else { continue };
            let how = meet(&fact.layout, fact.element, &place.layout, element);
            let hole = || Hole { layout: place.layout.clone(), element, step };
            match how {
                Overlap::Disjoint => {}
                Overlap::Same | Overlap::Inside => fact.holes = vec![hole()],
                Overlap::Contains | Overlap::Partial | Overlap::Unknown => fact.holes.push(hole()),
            }
        }
    }

    /// Adds a fact, in place of older facts of the same value in the same cells.
    pub fn learn(&mut self, buffer: BufferId, fact: Fact) {
        if let Some(old) = self.position(fact.value, buffer, &fact.layout) {
            self.facts[old] = Some((buffer, fact));
            return;
        }
        let at = self.free.pop().unwrap_or_else(|| {
            self.facts.push(None);
            self.facts.len() - 1
        });
        self.extents[buffer.index()].insert(&bytes(&fact.layout, fact.element), at);
        self.homes.entry(fact.value).push(at);
        self.facts[at] = Some((buffer, fact));
    }

    fn position(&self, value: ValueId, buffer: BufferId, layout: &Layout) -> Option<usize> {
        let is = |at: &&usize| matches!(&self.facts[**at], Some((b, f)) if *b == buffer && f.layout.same_cells(layout));
        self.homes[value].iter().find(is).copied()
    }

    /// The fact of a value in exactly these cells.
    pub fn find(&self, value: ValueId, buffer: BufferId, layout: &Layout) -> Option<&Fact> {
        self.facts[self.position(value, buffer, layout)?].as_ref().map(|(_, fact)| fact)
    }

    /// All facts of a value.
    pub fn of(&self, value: ValueId) -> Vec<(BufferId, Fact)> {
        self.homes[value].iter().filter_map(|at| self.facts[*at].clone()).collect()
    }

    /// Removes the facts of a value.
    pub fn forget(&mut self, value: ValueId) {
        if self.homes[value].is_empty() {
            return;
        }
        for at in std::mem::take(self.homes.entry(value)) {
            if let Some((buffer, fact)) = self.facts[at].take() {
                self.extents[buffer.index()].remove(&bytes(&fact.layout, fact.element), at);
                self.free.push(at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `near` returns all facts that touch a range.
    #[test]
    fn extents_miss_nothing() {
        let mut below = crate::draws(5);
        for _ in 0..200 {
            let mut extents = Extents::default();
            let mut all: Vec<Range<i64>> = Vec::new();
            for k in 0..40 {
                let start = below(100);
                let range = start..start + below(60);
                extents.insert(&range, k);
                all.push(range);
            }
            for k in (0..40).step_by(3) {
                extents.remove(&all[k], k);
            }
            let start = below(100);
            let asked = start..start + 1 + below(60);
            let near = extents.near(&asked);
            for (k, range) in all.iter().enumerate() {
                let touches = k % 3 != 0 && range.start < asked.end && asked.start < range.end;
                assert!(!touches || near.contains(&k), "{range:?} {asked:?}");
                assert!(k % 3 != 0 || !near.contains(&k));
            }
        }
    }
}
