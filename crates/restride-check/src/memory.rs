//! Facts about memory: which cells hold which value.

use restride_ir::{BufferId, Id, Layout, Place, ValueId};
use restride_tensor::{Overlap, overlap_bytes};
use std::collections::BTreeMap;

/// Cells that were written after a fact was made.
#[derive(Clone, Debug)]
pub struct Hole {
    layout: Layout,
    element: usize,
    /// The step that wrote them.
    pub step: usize,
}

/// The cells of a layout hold a value, but for holes.
#[derive(Clone, Debug)]
pub struct Fact {
    /// The value.
    pub value: ValueId,
    /// Where, in elements of the value's type.
    pub layout: Layout,
    /// Size of an element in bytes.
    pub element: usize,
    /// What is no longer the value.
    pub holes: Vec<Hole>,
}

/// How a write meets a layout.
fn meet(a: &Layout, a_element: usize, b: &Layout, b_element: usize) -> Overlap {
    overlap_bytes(a, a_element, b, b_element)
}

impl Fact {
    /// The holes that may touch a layout.
    pub fn holes_in(&self, layout: &Layout, element: usize) -> Vec<Hole> {
        let touches = |h: &&Hole| meet(&h.layout, h.element, layout, element) != Overlap::Disjoint;
        self.holes.iter().filter(touches).cloned().collect()
    }

    /// The holes that are not provably inside of a region.
    pub fn holes_outside(&self, region: &Layout, element: usize) -> Vec<Hole> {
        let inside =
            |h: &&Hole| !matches!(meet(&h.layout, h.element, region, element), Overlap::Same | Overlap::Inside);
        self.holes.iter().filter(inside).cloned().collect()
    }
}

/// What is known of all buffers.
#[derive(Default)]
pub struct Memory {
    facts: Vec<Vec<Fact>>,
    /// The buffers in which a value has facts.
    homes: BTreeMap<ValueId, Vec<BufferId>>,
}

impl Memory {
    /// Nothing is known of that many buffers.
    pub fn new(buffers: usize) -> Memory {
        Memory { facts: vec![Vec::new(); buffers], homes: BTreeMap::new() }
    }

    /// The cells of a place are written: holes in what is known of them.
    pub fn write(&mut self, place: &Place, element: usize, step: usize) {
        for fact in &mut self.facts[place.buffer.index()] {
            let how = meet(&fact.layout, fact.element, &place.layout, element);
            let hole = || Hole { layout: place.layout.clone(), element, step };
            match how {
                Overlap::Disjoint => {}
                Overlap::Same | Overlap::Inside => fact.holes = vec![hole()],
                Overlap::Contains | Overlap::Partial | Overlap::Unknown => fact.holes.push(hole()),
            }
        }
    }

    /// A new fact; it takes the place of what was known of the same value in the same cells.
    pub fn learn(&mut self, buffer: BufferId, fact: Fact) {
        let homes = self.homes.entry(fact.value).or_default();
        if !homes.contains(&buffer) {
            homes.push(buffer);
        }
        let facts = &mut self.facts[buffer.index()];
        match facts.iter_mut().find(|f| f.value == fact.value && f.layout.same_cells(&fact.layout)) {
            Some(old) => *old = fact,
            None => facts.push(fact),
        }
    }

    /// What is known of a value in exactly these cells.
    pub fn find(&self, value: ValueId, buffer: BufferId, layout: &Layout) -> Option<&Fact> {
        if !self.homes.get(&value)?.contains(&buffer) {
            return None;
        }
        self.facts[buffer.index()].iter().find(|f| f.value == value && f.layout.same_cells(layout))
    }

    /// All that is known of a value.
    pub fn of(&self, value: ValueId) -> Vec<(BufferId, Fact)> {
        let mut out = Vec::new();
        for &b in self.homes.get(&value).into_iter().flatten() {
            let facts = self.facts[b.index()].iter().filter(|f| f.value == value);
            out.extend(facts.map(|f| (b, f.clone())));
        }
        out
    }

    /// A value is used no more.
    pub fn forget(&mut self, value: ValueId) {
        for b in self.homes.remove(&value).unwrap_or_default() {
            self.facts[b.index()].retain(|f| f.value != value);
        }
    }
}
