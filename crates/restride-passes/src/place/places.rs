//! Places so far: buffers being filled, the values that are stored in each, and who would lose cells to a write.

use super::facts::{GraphFacts, ReadPositions};
use restride_ir::{
    Buffer, BufferId, BufferKind, DType, Error, Id, Layout, Meta, NodeId, Place, Placement, Result, Step, Table,
    ValueId, border_layout, layout_bytes,
};
use restride_tensor::{Overlap, overlap_bytes};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A placement under construction, and which of its values are still read.
///
/// Invariant: every cell that a node still to come reads through a placed value holds that value's element. `uses` and
/// `last_use` leave out readers that are placed views: those hold their cells themselves.
#[derive(Default)]
pub(super) struct Places {
    pub placement: Placement,
    /// Values in each buffer that may still be needed.
    living: Table<BufferId, Living>,
    writable: Table<BufferId, bool>,
    /// Positions of the nodes that read a value itself, in order.
    pub uses: Table<ValueId, ReadPositions>,
    /// Position of the last node that reads a value itself; past the last node for values that the caller gets.
    pub last_use: Table<ValueId, usize>,
    /// Views that were placed together with their bases.
    pub early_views: Table<NodeId, bool>,
    /// Those whose steps are made before their turn.
    pub shown_early: BTreeSet<NodeId>,
    /// Values that exchanges read until their waits.
    held: BTreeSet<ValueId>,
    /// Memory of each input, as at the start.
    pub inputs: Vec<Option<Place>>,
    /// Memory of each output that has been given one.
    pub outputs: BTreeMap<usize, Place>,
    /// The value whose place a view, or a value made in place, shares.
    owners: Table<ValueId, Option<ValueId>>,
    /// For each value made at a hinted place, the values that it replaced: no later node reads those cells of them.
    pub replaced: Table<ValueId, Vec<ValueId>>,
}

impl Places {
    pub fn new(facts: &GraphFacts<'_>) -> Places {
        let (uses, last_use) = (facts.uses.clone(), facts.last_use.clone());
        let (nodes, values) = (facts.graph.order.len(), facts.graph.values.len());
        let places = Table::with_capacity(values);
        let placement = Placement { places, steps: Vec::with_capacity(nodes), ..Placement::default() };
        let (inputs, owners) = (vec![None; facts.graph.inputs.len()], Table::with_capacity(values));
        let (early_views, replaced) = (Table::with_capacity(facts.graph.nodes.len()), Table::with_capacity(values));
        Places { placement, uses, last_use, early_views, inputs, owners, replaced, ..Places::default() }
    }

    /// Adds a buffer. All but inputs may be written.
    pub fn add(&mut self, kind: BufferKind, bytes: i64) -> BufferId {
        let writable = !matches!(kind, BufferKind::Input(_));
        let id = self.placement.buffers.push(Buffer { kind, bytes });
        self.writable.set(id, writable);
        id
    }

    /// A place with this layout in a buffer of its own.
    pub fn new_buffer(&mut self, kind: BufferKind, layout: Layout, dtype: DType) -> Place {
        Place { buffer: self.add(kind, layout_bytes(&layout, dtype.size())), layout }
    }

    /// A place with this layout in a new arena buffer.
    pub fn fresh(&mut self, layout: Layout, dtype: DType) -> Place {
        self.new_buffer(BufferKind::Arena, layout, dtype)
    }

    /// Gives a node's step scratch.
    pub fn add_scratch(&mut self, node: NodeId, bytes: i64) {
        if bytes > 0 {
            let buffer = self.add(BufferKind::Arena, bytes);
            self.placement.scratch.insert(node, buffer);
        }
    }

    pub fn set_writable(&mut self, id: BufferId, yes: bool) {
        self.writable.set(id, yes);
    }

    pub fn is_writable(&self, id: BufferId) -> bool {
        self.writable[id]
    }

    /// The place of a value that has one.
    pub fn find(&self, v: ValueId) -> Option<&Place> {
        self.placement.places[v].as_ref()
    }

    /// The place of a value.
    ///
    /// # Errors
    /// The value has none yet.
    pub fn get(&self, v: ValueId) -> Result<Place> {
        self.find(v).cloned().ok_or_else(|| Error::invalid("a value without a place"))
    }

    /// Puts a value at a place.
    pub fn set(&mut self, v: ValueId, place: Place, dtype: DType) {
        self.living.entry(place.buffer).insert(v, dtype, &place.layout);
        self.placement.places.set(v, Some(place));
    }

    /// Adds a step that moves a value's elements.
    pub fn push_move(&mut self, value: ValueId, from: Place, to: Place) {
        self.placement.steps.push(Step::Move { value, from: from.into(), to: to.into() });
    }

    /// Adds the step of a node that costs nothing at run time.
    pub fn push_free(&mut self, node: NodeId) {
        self.placement.steps.push(Step::Free { node });
    }

    /// The value whose place a value shares, or the value itself.
    pub fn owner(&self, v: ValueId) -> ValueId {
        self.owners[v].unwrap_or(v)
    }

    pub fn set_owner(&mut self, v: ValueId, owner: ValueId) {
        self.owners.set(v, Some(owner));
    }

    /// Whether a value is needed after the node at `at`.
    pub fn outlives(&self, v: ValueId, at: usize) -> bool {
        self.last_use[v] > at
    }

    /// Keeps the cells of a value until the node at `at`.
    pub fn hold(&mut self, v: ValueId, at: usize) {
        let last = self.last_use[v].max(at);
        self.last_use.set(v, last);
        self.held.insert(v);
    }

    /// Whether an exchange has the cells of a value until its wait, so that the value stays where it is.
    pub fn is_held(&self, v: ValueId) -> bool {
        self.held.contains(&v)
    }

    /// Position of the first node at or after `at` that reads a value.
    pub fn next_use(&self, v: ValueId, at: usize) -> Option<usize> {
        let uses = &self.uses[v];
        uses.get(uses.partition_point(|u| *u < at)).copied()
    }

    /// A base and the values that it replaced in its cells: a write to the base takes nothing else from them.
    pub fn replaced_with(&self, base: ValueId) -> Vec<ValueId> {
        std::iter::once(base).chain(self.replaced[base].iter().copied()).collect()
    }

    /// Notes that a value made in the cells of another one has replaced the same values.
    pub fn inherit(&mut self, v: ValueId, from: ValueId) {
        let own = &self.replaced[from];
        let gone = if own.is_empty() { &self.replaced[self.owner(from)] } else { own };
        if !gone.is_empty() {
            let gone = gone.clone();
            self.replaced.set(v, gone);
        }
    }

    /// Values other than `except` that share a cell with `target` and are needed at position `from` or later. Values that no
    /// node from `at` on needs are forgotten.
    pub fn losers(
        &mut self,
        target: &Place,
        dtype: DType,
        at: usize,
        from: usize,
        except: &[ValueId],
    ) -> Vec<(ValueId, Overlap)> {
        let (places, last_use) = (&self.placement.places, &self.last_use);
        let living = self.living.entry(target.buffer);
        let (mut losers, mut gone) = (Vec::new(), Vec::new());
        for (key, own) in living.near(&bytes(&target.layout, dtype.size())) {
            let v = key.2;
            // What this node reads is still asked for by the next question.
            let place = places[v].as_ref().filter(|p| p.buffer == target.buffer && last_use[v] >= at);
            let Some(place) = place else {
                gone.push(key);
                continue;
            };
            if last_use[v] < from || except.contains(&v) {
                continue;
            }
            let how = overlap_bytes(&place.layout, own.size(), &target.layout, dtype.size());
            if how != Overlap::Disjoint {
                losers.push((v, how));
            }
        }
        gone.iter().for_each(|key| living.remove(key));
        losers.sort_by_key(|l| l.0);
        losers
    }
}

/// Values of one buffer: those that touch a range of bytes are found without a look at all.
#[derive(Clone, Default, PartialEq, Debug)]
struct Living {
    /// The first ones, in no order: most buffers hold no others.
    few: SmallVec<[(LivingKey, DType); 1]>,
    /// All others by first byte, in classes of similar length: a value that touches a range of bytes begins in it, or before it by
    /// at most the length of its class.
    classes: BTreeMap<u32, BTreeMap<(i64, ValueId), DType>>,
}

/// Class, first byte, value.
type LivingKey = (u32, i64, ValueId);

/// The number of values that are looked at one by one.
const FEW: usize = 8;

impl Living {
    fn insert(&mut self, v: ValueId, dtype: DType, layout: &Layout) {
        let range = bytes(layout, dtype.size());
        let class = i64::BITS - (range.end - range.start).max(0).leading_zeros();
        let key = (class, range.start, v);
        if let Some(known) = self.few.iter_mut().find(|(k, _)| *k == key) {
            known.1 = dtype;
        } else if self.few.len() < FEW {
            self.few.push((key, dtype));
        } else {
            self.classes.entry(class).or_default().insert((range.start, v), dtype);
        }
    }
    fn remove(&mut self, key: &LivingKey) {
        self.few.retain(|(k, _)| k != key);
        if let Some(class) = self.classes.get_mut(&key.0) {
            class.remove(&(key.1, key.2));
        }
    }
    /// Every value that may touch a range, and some that do not.
    fn near(&self, range: &Range<i64>) -> SmallVec<[(LivingKey, DType); 4]> {
        let from = |class: u32| range.start.saturating_sub(1i64.checked_shl(class).unwrap_or(i64::MAX));
        let is_near = |(class, start, _): LivingKey| (from(class)..range.end).contains(&start);
        let mut out: SmallVec<[(LivingKey, DType); 4]> =
            self.few.iter().filter(|(k, _)| is_near(*k)).copied().collect();
        for (&class, values) in &self.classes {
            let zero = ValueId::new(0);
            let near = values.range((from(class), zero)..(range.end.max(from(class)), zero));
            out.extend(near.map(|(&(start, v), &dtype)| ((class, start, v), dtype)));
        }
        out
    }
}

/// The range of bytes that a layout spans.
fn bytes(layout: &Layout, element: usize) -> Range<i64> {
    let cells = layout.cell_range();
    cells.start.saturating_mul(element as i64)..cells.end.saturating_mul(element as i64)
}

/// The layout of a value in a buffer of its own, where no kernel prefers another one.
pub(super) fn default_layout(ty: &Meta) -> Layout {
    let layout = border_layout(ty);
    if layout.is_dense() { layout } else { Layout::contiguous(&ty.layout.sizes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `near` returns all values that touch a range, of few and of many.
    #[test]
    fn living_values_are_found() {
        let mut state = 5u64;
        let mut below = |n: i64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as i64 % n
        };
        for round in 0..200 {
            let (mut living, mut all) = (Living::default(), Vec::new());
            for k in 0..round % 40 {
                let layout = Layout { offset: below(100), ..Layout::contiguous(&[1 + below(60)]) };
                living.insert(ValueId::new(k), DType::U8, &layout);
                all.push(layout.cell_range());
            }
            let start = below(100);
            let asked = start..start + 1 + below(60);
            let touches = |k: &usize| all[*k].start < asked.end && asked.start < all[*k].end;
            let gone: BTreeSet<ValueId> = living.near(&(0..50)).iter().step_by(3).map(|(key, _)| key.2).collect();
            for (key, _) in living.near(&(0..200)) {
                if gone.contains(&key.2) {
                    living.remove(&key);
                }
            }
            let near: Vec<ValueId> = living.near(&asked).iter().map(|(key, _)| key.2).collect();
            for v in (0..all.len()).map(ValueId::new) {
                assert!(!gone.contains(&v) || !near.contains(&v), "{v} was removed");
                assert!(gone.contains(&v) || !touches(&v.index()) || near.contains(&v), "{v} {asked:?} {all:?}");
            }
        }
    }
}
