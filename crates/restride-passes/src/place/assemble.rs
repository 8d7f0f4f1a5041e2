//! `cat` and its like: results put together of operands, each of which may lie in its part already.

use super::Placer;
use super::choose::Write;
use super::homes::{Pieces, Spot};
use restride_ir::{
    Arg, Args, AssemblyPart, Error, Layout, Meta, NodeId, Place, Reason, RemarkKind, Result, Scalar, Step, ValueId,
};

/// Of how many operands it is asked whether the whole may lie around them.
const ASKED: usize = 4;

/// A place for a whole, with the parts that lie there, and those that must be moved.
struct Built {
    place: Place,
    pieces: Vec<AssemblyPart>,
    moved: i64,
}

impl Placer<'_> {
    /// An assembled result: where its parts were put together, around parts that lie as the whole needs them, or where the
    /// whole is wanted; what is not there is moved. False if the operands are converted on the way.
    pub(super) fn assemble(&mut self, at: usize, id: NodeId, pieces: Pieces) -> Result<bool> {
        let args = self.metas(id, |v| Ok(self.ty(v)?.clone()))?;
        let r = self.graph.nodes[id].results[0];
        let ty = self.ty(r)?.clone();
        let operands: Vec<ValueId> = self.graph.nodes[id].operands().collect();
        if operands.iter().any(|v| self.types[*v].as_ref().is_none_or(|t| t.dtype != ty.dtype)) {
            return Ok(false);
        }
        let mut best: Option<Built> = None;
        let mut candidates: Vec<(Place, Vec<ValueId>)> = self.ahead.get(&r).cloned().into_iter().collect();
        candidates.extend(self.around(&operands, &args, &ty, pieces)?.into_iter().map(|place| (place, Vec::new())));
        for (place, except) in candidates {
            let Some(option) = self.option(at, id, &operands, &args, &ty, pieces, place, &except)? else { continue };
            if best.as_ref().is_none_or(|b| option.moved < b.moved) {
                best = Some(option);
            }
        }
        let all: i64 = operands.iter().map(|v| self.bytes_of(*v)).sum();
        let option = match best {
            // Around its parts it costs less than where it is wanted, even if it is moved there after that.
            Some(best) if best.moved + self.moved_on(at, r, &best.place)? < all || all == 0 => best,
            _ => {
                let place = self.home(at, id, r)?;
                let pieces = pieces(&Args(&args), &place.layout)?;
                Built { place, pieces, moved: all }
            }
        };
        self.settle(r, option.place.clone(), ty.dtype)?;
        for piece in option.pieces {
            let v = operands[piece.operand];
            let from = self.memory.place(v).cloned().ok_or_else(|| Error::invalid("a value without a place"))?;
            let to = Place { buffer: option.place.buffer, layout: piece.region };
            if there(&from, &to) {
                self.remark(id, RemarkKind::AssembleInPlace, Reason::Taken, self.bytes_of(v), Some(v));
                continue;
            }
            self.not_there(id, v, RemarkKind::AssembleInPlace);
            self.memory.placement.steps.push(Step::Move { value: v, from: from.into(), to: to.into() });
        }
        self.memory.placement.steps.push(Step::Free { node: id });
        Ok(true)
    }

    /// Bytes that are moved on if a value is made at this place.
    fn moved_on(&mut self, at: usize, v: ValueId, place: &Place) -> Result<i64> {
        if self.ahead.get(&v).is_some_and(|(p, _)| p == place) {
            return Ok(0);
        }
        let elsewhere = self.homes(at, v)?.iter().any(|h| matches!(&h.spot, Ok(Spot::At(p)) if !there(p, place)));
        Ok(if elsewhere { self.bytes_of(v) } else { 0 })
    }

    /// A value had to be moved to where it was wanted: unless it has been said why, it was made elsewhere.
    pub(super) fn not_there(&mut self, id: NodeId, v: ValueId, kind: RemarkKind) {
        if !self.declined.contains(&(v, kind)) {
            self.remark(id, kind, Reason::MadeElsewhere, self.bytes_of(v), Some(v));
        }
    }

    /// Places of the whole in which one of its larger parts lies as it does.
    fn around(
        &self,
        operands: &[ValueId],
        args: &[Arg<Meta, Scalar>],
        ty: &Meta,
        pieces: Pieces,
    ) -> Result<Vec<Place>> {
        let mut largest: Vec<usize> = (0..operands.len()).collect();
        largest.sort_by_key(|k| std::cmp::Reverse(self.bytes_of(operands[*k])));
        let mut out: Vec<Place> = Vec::new();
        for k in largest.into_iter().take(ASKED) {
            let Some(part) = self.memory.place(operands[k]) else { continue };
            if part.layout.rank() != ty.layout.rank() {
                continue;
            }
            let whole = Layout::strided(&ty.layout.sizes, &part.layout.strides, 0);
            let Some(region) = pieces(&Args(args), &whole)?.into_iter().find(|p| p.operand == k).map(|p| p.region)
            else {
                continue;
            };
            let at_zero = Layout { offset: region.offset, ..part.layout.clone() };
            if !region.same_cells(&at_zero) {
                continue;
            }
            let layout = Layout { offset: part.layout.offset - region.offset, ..whole };
            let cells = layout.cell_range();
            let buffer = &self.memory.placement.buffers[part.buffer];
            let inside = cells.start >= 0 && cells.end.saturating_mul(ty.dtype.size() as i64) <= buffer.bytes;
            let place = Place { buffer: part.buffer, layout };
            if inside && !out.contains(&place) {
                out.push(place);
            }
        }
        Ok(out)
    }

    /// What a place of the whole costs; `None` if what must be moved there would overwrite what is still read.
    #[allow(clippy::too_many_arguments)]
    fn option(
        &mut self,
        at: usize,
        id: NodeId,
        operands: &[ValueId],
        args: &[Arg<Meta, Scalar>],
        ty: &Meta,
        pieces: Pieces,
        place: Place,
        except: &[ValueId],
    ) -> Result<Option<Built>> {
        let pieces = pieces(&Args(args), &place.layout)?;
        let mut moved = 0;
        for piece in &pieces {
            let v = operands[piece.operand];
            let to = Place { buffer: place.buffer, layout: piece.region.clone() };
            let Some(from) = self.memory.place(v) else { return Ok(None) };
            if there(from, &to) || piece.region.sizes.contains(&0) {
                continue;
            }
            let write = Write { at, id, result: None, taken: &[] };
            if self.may_write(&write, &to, ty, except)?.0 != Reason::Taken {
                return Ok(None);
            }
            moved += self.bytes_of(v);
        }
        Ok(Some(Built { place, pieces, moved }))
    }
}

pub(super) fn there(from: &Place, to: &Place) -> bool {
    from.buffer == to.buffer && from.layout.same_cells(&to.layout)
}
