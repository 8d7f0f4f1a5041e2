//! `cat` and its like assemble a whole from operands; an operand may be stored in its part of the whole already.

use super::Placer;
use super::hints::{AssembleFn, HintTarget};
use super::overwrite::Write;
use restride_ir::{
    Arg, Args, AssemblyPart, Layout, Meta, NodeId, Place, Reason, RemarkKind, Result, Scalar, ValueId, sort_indices,
};

/// The largest operands around whose places the whole may be stored.
const CANDIDATES: usize = 4;

/// A `cat` or its like.
struct Whole {
    at: usize,
    id: NodeId,
    operands: Vec<ValueId>,
    args: Vec<Arg<Meta, Scalar>>,
    ty: Meta,
    pieces: AssembleFn,
}

impl Whole {
    fn pieces(&self, layout: &Layout) -> Result<Vec<AssemblyPart>> {
        Ok((self.pieces)(&Args(&self.args), layout)?)
    }
}

/// A place for a whole, its pieces in it, and the bytes that must be moved.
struct Built {
    place: Place,
    pieces: Vec<AssemblyPart>,
    moved: i64,
}

impl Placer<'_> {
    /// Places an assembled result: where its parts were assembled, around parts that are stored as the whole needs them, or
    /// at a hinted place. Parts that are elsewhere are moved. False if the operands are converted on the way.
    pub(super) fn assemble(&mut self, at: usize, id: NodeId, pieces: AssembleFn) -> Result<bool> {
        let facts = self.facts;
        let args = self.eager_args(id)?;
        let r = facts.graph.nodes[id].results[0];
        let ty = facts.ty(r)?.clone();
        let operands: Vec<ValueId> = facts.graph.nodes[id].operands().collect();
        if operands.iter().any(|v| facts.known_type(*v).is_none_or(|t| t.dtype != ty.dtype)) {
            return Ok(false);
        }
        let whole = Whole { at, id, operands, args, ty, pieces };
        let mut best: Option<Built> = None;
        let mut candidates: Vec<(Place, Vec<ValueId>)> = self.hints.reserved.get(&r).cloned().into_iter().collect();
        candidates.extend(self.around(&whole)?.into_iter().map(|place| (place, Vec::new())));
        for (place, except) in candidates {
            let Some(built) = self.built(&whole, place, &except)? else { continue };
            if best.as_ref().is_none_or(|b| built.moved < b.moved) {
                best = Some(built);
            }
        }
        let all: i64 = whole.operands.iter().map(|v| facts.bytes_of(*v)).sum();
        let built = match best {
            // Around its parts the whole costs less than at a hinted place, even if it is moved to that place later.
            Some(best) if best.moved + self.moved_on(at, r, &best.place)? < all || all == 0 => best,
            _ => {
                let place = self.moved_place(&Write::moved(at, id), r)?;
                let pieces = whole.pieces(&place.layout)?;
                Built { place, pieces, moved: all }
            }
        };
        if let Some((place, except)) = self.hints.reserved.get(&r)
            && *place == built.place
            && !except.is_empty()
        {
            self.places.replaced.set(r, except.clone());
        }
        self.settle(r, built.place.clone(), whole.ty.dtype)?;
        for piece in built.pieces {
            let v = whole.operands[piece.operand];
            let from = self.places.get(v)?;
            let to = Place { buffer: built.place.buffer, layout: piece.region };
            if is_at(&from, &to) {
                self.remark(id, RemarkKind::AssembleInPlace, Reason::Taken, facts.bytes_of(v), Some(v));
                continue;
            }
            self.remark_moved(id, v, RemarkKind::AssembleInPlace);
            self.places.push_move(v, from, to);
        }
        self.places.push_free(id);
        Ok(true)
    }

    /// Bytes that are moved on if a value is made at this place.
    fn moved_on(&mut self, at: usize, v: ValueId, place: &Place) -> Result<i64> {
        if self.hints.reserved.get(&v).is_some_and(|(p, _)| p == place) {
            return Ok(0);
        }
        let elsewhere =
            self.hints(at, v)?.iter().any(|h| matches!(&h.target, Ok(HintTarget::At(p)) if !is_at(p, place)));
        Ok(if elsewhere { self.facts.bytes_of(v) } else { 0 })
    }

    /// Places of the whole at which one of its largest parts would not have to move.
    fn around(&self, whole: &Whole) -> Result<Vec<Place>> {
        let Whole { operands, ty, .. } = whole;
        let mut largest: Vec<usize> = (0..operands.len()).collect();
        let bytes = |k: usize| self.facts.bytes_of(operands[k]);
        sort_indices(&mut largest, &|a, b| bytes(b).cmp(&bytes(a)));
        let mut out: Vec<Place> = Vec::new();
        for k in largest.into_iter().take(CANDIDATES) {
            let Some(part) = self.places.find(operands[k]) else { continue };
            if part.layout.rank() != ty.layout.rank() {
                continue;
            }
            let layout = Layout::strided(&ty.layout.sizes, &part.layout.strides, 0);
            let Some(piece) = whole.pieces(&layout)?.into_iter().find(|p| p.operand == k) else { continue };
            let region = piece.region;
            let at_zero = Layout { offset: region.offset, ..part.layout.clone() };
            if !region.same_cells(&at_zero) {
                continue;
            }
            let layout = Layout { offset: part.layout.offset - region.offset, ..layout };
            let cells = layout.cell_range();
            let buffer = &self.places.placement.buffers[part.buffer];
            let inside = cells.start >= 0 && cells.end.saturating_mul(ty.dtype.size() as i64) <= buffer.bytes;
            let place = Place { buffer: part.buffer, layout };
            if inside && !out.contains(&place) {
                out.push(place);
            }
        }
        Ok(out)
    }

    /// The whole at a place, with the bytes that must be moved to it; `None` if these moves would overwrite cells that are
    /// still read.
    fn built(&mut self, whole: &Whole, place: Place, except: &[ValueId]) -> Result<Option<Built>> {
        let pieces = whole.pieces(&place.layout)?;
        let mut moved = 0;
        for piece in &pieces {
            let v = whole.operands[piece.operand];
            let to = Place { buffer: place.buffer, layout: piece.region.clone() };
            let Some(from) = self.places.find(v) else { return Ok(None) };
            if is_at(from, &to) || piece.region.sizes.contains(&0) {
                continue;
            }
            if self.may_write(&Write::moved(whole.at, whole.id), &to, &whole.ty, except)?.0 != Reason::Taken {
                return Ok(None);
            }
            moved += self.facts.bytes_of(v);
        }
        Ok(Some(Built { place, pieces, moved }))
    }
}

/// Whether two places are the same cells, index by index.
pub(super) fn is_at(from: &Place, to: &Place) -> bool {
    from.buffer == to.buffer && from.layout.same_cells(&to.layout)
}
