//! The buffers of programs that join the elements of rows.

use super::joined::{KEPT_ROWS, PARTS, ROWS, SUM_ROWS};
use super::walk::RowWalk;
use super::{LINE, PART, RowProgram, SlotUse};
use restride_kernels::reduce::parts::SIDE;
use restride_tensor::DType;
use smallvec::SmallVec;

/// The buffers of a program, by their first element.
pub(super) struct RowBuffers {
    /// Elements of a part.
    pub width: usize,
    /// Rows of a block.
    pub rows: usize,
    pub spare: usize,
    /// Lanes that sums of whole rows are added up in.
    pub lanes: usize,
    /// In order of the slots; of those that are in memory.
    slots: SmallVec<[Option<usize>; 16]>,
    /// For what each row has one of, a part of copies.
    pub spread: SmallVec<[Option<usize>; 16]>,
    pub constants: SmallVec<[Option<usize>; 8]>,
    /// Of tensors that element calls cannot read or write where they are.
    pub apart: SmallVec<[Option<usize>; 8]>,
    pub len: usize,
}

impl RowBuffers {
    /// The buffer of a slot.
    pub fn slot(&self, k: usize) -> usize {
        self.slots[k].expect("a buffer for what is in memory")
    }
}

impl RowProgram {
    /// The buffers for rows along `inner`, which begin along `outer`.
    pub(super) fn row_buffers(&self, inner: &RowWalk, outer: &RowWalk) -> RowBuffers {
        // A part may have several rows. A call reads them as one slice, so rows that lie apart are copied behind each other.
        let several = inner.is_one() && inner.len <= PART / 2;
        let apart = |k: usize| {
            let t = &self.tensors[k];
            let rows = several && outer.strides[k] != inner.len as isize;
            let elements = inner.strides[k] != 1 || t.dtype != DType::F32;
            (elements || rows) && self.in_memory.tensors[k]
        };
        let apart: SmallVec<[bool; 8]> = (0..self.tensors.len()).map(apart).collect();
        let slots = || self.slots.iter().zip(&self.in_memory.slots).zip(&self.in_memory.spread);
        let parts = slots().filter(|((s, used), spread)| **spread || **used && **s == SlotUse::Part).count();
        let constants = || self.in_memory.constants.iter();
        let count = 1 + parts + constants().filter(|c| **c).count() + apart.iter().filter(|a| **a).count();
        let sums = self.calls.iter().filter_map(|c| c.chain.as_ref()).map(|c| c.sums).max().unwrap_or(0);
        // Whole parts of the reductions' blocks, where they have room; where sums are added up in lanes, parts that no block ends within.
        let width = match PARTS / count {
            many @ 64.. => many.min(PART) / SIDE * SIDE,
            _ if sums > 0 => SIDE,
            few => few.max(16) / 16 * 16,
        };
        let width = match sums {
            _ if inner.len <= width => width / inner.len * inner.len,
            0 => width,
            _ => 1 << width.ilog2(),
        };
        let len = self.row.iter().map(|d| self.sizes[*d] as usize).product::<usize>();
        let kept = self.slots.iter().filter(|s| **s == SlotUse::Kept).count() * len;
        let rows = KEPT_ROWS.checked_div(kept).map_or(ROWS, |rows| rows.clamp(1, ROWS));
        let mut used = 0;
        let mut take = |n: usize| {
            let at = used;
            used += n.next_multiple_of(LINE);
            at
        };
        let spare = take(width.max(rows));
        let lanes = take(sums * SUM_ROWS * SIDE);
        let (mut at, mut spread) = (SmallVec::new(), SmallVec::new());
        for ((s, used), spreads) in slots() {
            let room = match s {
                SlotUse::Part => width,
                SlotUse::Kept => len * rows,
                SlotUse::Once | SlotUse::Spread => rows,
            };
            at.push(used.then(|| take(room)));
            spread.push(spreads.then(|| take(width)));
        }
        let constants = constants().map(|used| used.then(|| take(width.max(rows)))).collect();
        let apart = apart.iter().map(|apart| apart.then(|| take(width))).collect();
        RowBuffers { width, rows, spare, lanes, slots: at, spread, constants, apart, len: used }
    }
}
