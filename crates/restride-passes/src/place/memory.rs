//! Buffers being filled: which values lie in each, and who would lose cells to a write.

use restride_ir::{
    Buffer, BufferId, BufferKind, DType, Id, Layout, Meta, Place, Placement, Table, ValueId, border_layout,
    layout_bytes,
};
use restride_tensor::{Overlap, overlap_bytes};
use std::collections::BTreeMap;
use std::ops::Range;

/// A placement under construction.
#[derive(Default)]
pub(super) struct Memory {
    pub placement: Placement,
    /// Values in each buffer that may still be needed.
    living: Table<BufferId, Living>,
    writable: Table<BufferId, bool>,
}

impl Memory {
    /// A buffer; the arena's and outputs' may be written.
    pub fn add(&mut self, buffer: Buffer) -> BufferId {
        let writable = !matches!(buffer.kind, BufferKind::Input(_));
        let id = self.placement.buffers.push(buffer);
        self.writable.set(id, writable);
        id
    }

    /// Whether a buffer may be written.
    pub fn writable(&mut self, id: BufferId, yes: bool) {
        self.writable.set(id, yes);
    }

    /// Whether a buffer may be written.
    pub fn may_write(&self, id: BufferId) -> bool {
        self.writable[id]
    }

    /// Where a value is.
    pub fn place(&self, v: ValueId) -> Option<&Place> {
        self.placement.places[v].as_ref()
    }

    /// Puts a value at a place.
    pub fn settle(&mut self, v: ValueId, place: Place, dtype: DType) {
        self.living.entry(place.buffer).insert(v, dtype, &place.layout);
        self.placement.places.set(v, Some(place));
    }

    /// A place in a new arena buffer.
    pub fn fresh_as(&mut self, layout: Layout, dtype: DType) -> Place {
        let bytes = layout_bytes(&layout, dtype.size());
        let buffer = self.add(Buffer { kind: BufferKind::Arena, bytes });
        Place { buffer, layout }
    }

    /// Values other than `except` that share a cell with the region and are needed after the node at `at`; with `reading`,
    /// also those that this node reads. Those needed no more are forgotten.
    pub fn losers(
        &mut self,
        buffer: BufferId,
        region: &Layout,
        region_dtype: DType,
        needed: Needed<'_>,
        except: &[ValueId],
    ) -> Vec<(ValueId, Overlap)> {
        let places = &self.placement.places;
        let living = self.living.entry(buffer);
        let first = if needed.reading { needed.at } else { needed.at + 1 };
        let (mut losers, mut gone) = (Vec::new(), Vec::new());
        for (key, dtype) in living.near(&bytes(region, region_dtype.size())) {
            let v = key.2;
            // What this node reads is still asked for by the next question.
            let place = places[v].as_ref().filter(|p| p.buffer == buffer && needed.last_use[v] >= needed.at);
            let Some(place) = place else {
                gone.push(key);
                continue;
            };
            if needed.last_use[v] < first || except.contains(&v) {
                continue;
            }
            let how = overlap_bytes(&place.layout, dtype.size(), region, region_dtype.size());
            if how != Overlap::Disjoint {
                losers.push((v, how));
            }
        }
        gone.iter().for_each(|key| living.remove(key));
        losers.sort_by_key(|l| l.0);
        losers
    }
}

/// Values of one buffer by where they lie, in classes of similar length: what may touch a range of bytes begins in it, or
/// before it by no more than its class is long.
#[derive(Clone, Default, PartialEq, Debug)]
struct Living {
    classes: BTreeMap<u32, BTreeMap<(i64, ValueId), DType>>,
}

/// Class, first byte, value.
type Key = (u32, i64, ValueId);

impl Living {
    fn insert(&mut self, v: ValueId, dtype: DType, layout: &Layout) {
        let range = bytes(layout, dtype.size());
        let class = i64::BITS - (range.end - range.start).max(0).leading_zeros();
        self.classes.entry(class).or_default().insert((range.start, v), dtype);
    }
    fn remove(&mut self, key: &Key) {
        if let Some(class) = self.classes.get_mut(&key.0) {
            class.remove(&(key.1, key.2));
        }
    }
    /// All that may touch a range, and some that do not.
    fn near(&self, range: &Range<i64>) -> Vec<(Key, DType)> {
        let mut out = Vec::new();
        for (&class, values) in &self.classes {
            let from = range.start.saturating_sub(1i64.checked_shl(class).unwrap_or(i64::MAX));
            let zero = ValueId::new(0);
            let near = values.range((from, zero)..(range.end.max(from), zero));
            out.extend(near.map(|(&(start, v), &dtype)| ((class, start, v), dtype)));
        }
        out
    }
}

/// Bytes that a layout reaches.
fn bytes(layout: &Layout, element: usize) -> Range<i64> {
    let cells = layout.cell_range();
    cells.start.saturating_mul(element as i64)..cells.end.saturating_mul(element as i64)
}

/// Which values count as needed.
#[derive(Clone, Copy)]
pub(super) struct Needed<'a> {
    /// The last node that reads each value.
    pub last_use: &'a Table<ValueId, usize>,
    /// The node that is being placed.
    pub at: usize,
    /// Whether what this node reads is needed, too: it is written while that is read.
    pub reading: bool,
}

/// The layout that a value gets in memory of its own.
pub(super) fn dense(ty: &Meta) -> Layout {
    let layout = border_layout(ty);
    if layout.is_dense() { layout } else { Layout::contiguous(&ty.layout.sizes) }
}
