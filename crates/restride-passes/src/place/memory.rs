//! Buffers being filled: which values lie in each, and who would lose cells to a write.

use restride_ir::{
    Buffer, BufferId, BufferKind, DType, Layout, Meta, Place, Placement, Table, ValueId, border_layout, layout_bytes,
};
use restride_tensor::{Overlap, overlap_bytes};

/// A placement under construction.
#[derive(Default)]
pub(super) struct Memory {
    pub placement: Placement,
    /// Values in each buffer that may still be needed.
    living: Table<BufferId, Vec<(ValueId, DType)>>,
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
        self.living.entry(place.buffer).push((v, dtype));
        self.placement.places.set(v, Some(place));
    }

    /// A place in a new arena buffer, with eager strides where those are dense.
    pub fn fresh(&mut self, ty: &Meta) -> Place {
        let layout = dense(ty);
        let bytes = layout_bytes(&layout, ty.dtype.size());
        let buffer = self.add(Buffer { kind: BufferKind::Arena, bytes });
        Place { buffer, layout }
    }

    /// Values other than `except` that share a cell with the region and are needed after the node at `at`; with `reading`,
    /// also those that this node reads. Those needed no more are forgotten.
    pub fn losers(
        &mut self,
        buffer: BufferId,
        region: &Layout,
        dtype: DType,
        needed: Needed<'_>,
        except: &[ValueId],
    ) -> Vec<(ValueId, Overlap)> {
        let places = &self.placement.places;
        let living = self.living.entry(buffer);
        // What this node reads is still asked for by the next question.
        let here = |v: ValueId| places[v].as_ref().is_some_and(|p| p.buffer == buffer);
        living.retain(|(v, _)| needed.last_use[*v] >= needed.at && here(*v));
        let first = if needed.reading { needed.at } else { needed.at + 1 };
        living
            .iter()
            .filter(|(v, _)| needed.last_use[*v] >= first && !except.contains(v))
            .filter_map(|(v, d)| {
                let place = places[*v].as_ref()?;
                let how = overlap_bytes(&place.layout, d.size(), region, dtype.size());
                (how != Overlap::Disjoint).then_some((*v, how))
            })
            .collect()
    }
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
