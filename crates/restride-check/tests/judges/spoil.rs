//! Damage to placements.

use super::Lcg;
use restride_ir::{BufferId, BufferKind, Id, Place, Placement, Step};

/// What is done to a placement.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// Two steps change places.
    Swap,
    /// A step is left out.
    Drop,
    /// A step is done again at another time.
    Repeat,
    /// One place begins elsewhere.
    Offset,
    /// One place is in another buffer.
    Buffer,
    /// One place has other strides.
    Strides,
    /// Two buffers are one.
    Merge,
    /// A copy goes elsewhere.
    Target,
}

/// All of them.
pub const KINDS: [Kind; 8] =
    [Kind::Swap, Kind::Drop, Kind::Repeat, Kind::Offset, Kind::Buffer, Kind::Strides, Kind::Merge, Kind::Target];

fn places(step: &mut Step) -> Vec<&mut Place> {
    match step {
        Step::Run { reads, writes, .. } => reads.iter_mut().chain(writes).flatten().collect(),
        Step::Move { from, to, .. } => vec![from, to],
        Step::Free { .. } => Vec::new(),
    }
}

/// Damages a placement in one way; `None` if that cannot be done to it.
pub fn spoil(placement: &Placement, rng: &mut Lcg) -> Option<(Kind, Placement)> {
    let mut out = placement.clone();
    let kind = *rng.pick(&KINDS);
    let steps = out.steps.len();
    let at = rng.below(steps);
    let buffers = out.buffers.len();
    match kind {
        Kind::Swap => {
            let other = rng.below(steps);
            out.steps.swap(at, other);
        }
        Kind::Drop => {
            out.steps.remove(at);
        }
        Kind::Repeat => {
            let step = out.steps[at].clone();
            out.steps.insert(rng.below(steps + 1), step);
        }
        Kind::Offset | Kind::Buffer | Kind::Strides => {
            let mut all: Vec<&mut Place> = out.steps.iter_mut().flat_map(places).collect();
            if all.is_empty() {
                return None;
            }
            let k = rng.below(all.len());
            let place = &mut *all[k];
            match kind {
                Kind::Offset => place.layout.offset += [-2, -1, 1, 2, 3][rng.below(5)],
                Kind::Buffer => place.buffer = BufferId::new(rng.below(buffers)),
                _ => {
                    let d = rng.below(place.layout.strides.len());
                    let stride = place.layout.strides.get_mut(d)?;
                    *stride = [0, 1, 2, 3][rng.below(4)];
                }
            }
        }
        Kind::Merge => {
            let arena: Vec<BufferId> =
                out.buffers.iter().filter(|(_, b)| b.kind == BufferKind::Arena).map(|(id, _)| id).collect();
            if arena.len() < 2 {
                return None;
            }
            let (a, b) = (*rng.pick(&arena), *rng.pick(&arena));
            let bytes = out.buffers[a].bytes.max(out.buffers[b].bytes);
            out.buffers[a].bytes = bytes;
            out.steps.iter_mut().flat_map(places).filter(|p| p.buffer == b).for_each(|p| p.buffer = a);
            let values: Vec<_> = (0..1000).map(restride_ir::ValueId::new).collect();
            for v in values {
                if let Some(mut place) = out.places[v].clone().filter(|p| p.buffer == b) {
                    place.buffer = a;
                    out.places.set(v, Some(place));
                }
            }
        }
        Kind::Target => {
            let Step::Move { to, .. } = &mut out.steps[at] else { return None };
            to.buffer = BufferId::new(rng.below(buffers));
        }
    }
    (out != *placement).then_some((kind, out))
}
