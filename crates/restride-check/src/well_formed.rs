//! Places that are no memory: sizes other than the value's, fewer strides than sizes, numbers beyond all addresses.
//!
//! The checker computes with layouts, so it starts only if all of them are well formed.

use crate::FaultKind;
use crate::placement::PlacementWalk;
use restride_ir::{Meta, Place, Placement, Step, ValueId};

/// Larger strides, offsets and buffers are refused, in elements or bytes.
pub(crate) const MOST: i64 = 1 << 48;

/// Checks that a place is a layout in a buffer of the placement.
fn is_layout(placement: &Placement, place: &Place) -> Result<(), &'static str> {
    let layout = &place.layout;
    if layout.strides.len() != layout.sizes.len() {
        return Err("has a place with another number of strides than of sizes");
    }
    let fits = |n: &i64| (-MOST..=MOST).contains(n);
    let steps = layout.sizes.iter().zip(&layout.strides);
    let reach: i128 = steps.map(|(n, stride)| (i128::from(*n) * i128::from(*stride)).abs()).sum();
    if !layout.sizes.iter().chain(&layout.strides).chain([&layout.offset]).all(fits) || reach > i128::from(MOST) {
        return Err("has a place beyond all addresses");
    }
    if placement.buffers.get(place.buffer).is_none() {
        return Err("is in a buffer that the placement does not have");
    }
    Ok(())
}

impl PlacementWalk<'_> {
    /// Whether every place is a layout of its value and every buffer a range of memory; else faults say which is not.
    pub(crate) fn well_formed(&mut self) -> bool {
        let placement = self.placement;
        let before = self.faults.len();
        for (id, buffer) in placement.buffers.iter() {
            if !(0..=MOST).contains(&buffer.bytes) {
                self.fault(FaultKind::Malformed, None, None, format!("{id} has {} bytes", buffer.bytes));
            }
        }
        for v in self.graph.values.ids() {
            if let Some(place) = &placement.places[v] {
                self.shaped(v, place);
            }
        }
        for (at, step) in placement.steps.iter().enumerate() {
            self.at = Some(at);
            self.node = None;
            match step {
                Step::Run { node: id, reads, writes } => {
                    let Some(node) = self.graph.nodes.get(*id) else { continue };
                    self.node = Some(*id);
                    let operands = node.operands().zip(reads);
                    let results = node.results.iter().copied().zip(writes);
                    operands.chain(results).for_each(|(v, place)| {
                        if let Some(place) = place {
                            self.shaped(v, place);
                        }
                    });
                }
                Step::Move { value, from, to } => [from, to].into_iter().for_each(|place| self.shaped(*value, place)),
                Step::Free { .. } => {}
            }
        }
        (self.at, self.node) = (None, None);
        self.faults.len() == before
    }

    fn shaped(&mut self, v: ValueId, place: &Place) {
        if let Err(what) = is_layout(self.placement, place) {
            return self.fault(FaultKind::Malformed, Some(v), Some(place), what);
        }
        let other = |meta: &&Meta| meta.layout.sizes != place.layout.sizes;
        if let Some(what) = self.metas[v].as_ref().filter(other).map(|m| format!("has a place of other sizes than {m}"))
        {
            self.fault(FaultKind::Malformed, Some(v), Some(place), what);
        }
    }
}
