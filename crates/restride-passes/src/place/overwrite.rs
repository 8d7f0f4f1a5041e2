//! The one question of placement: may a step write a place now?

use super::Placer;
use restride_ir::{BufferKind, HopCall, Meta, NodeId, Place, Reason, Result, ReuseKind, ValueId, may_trail};
use restride_tensor::{Overlap, index_by_index, overlap_bytes, self_overlaps};

/// A write that a step is about to make.
pub(super) struct Write<'a> {
    /// Position of the node.
    pub at: usize,
    pub id: NodeId,
    /// The result that a kernel writes; `None` for a move, for which no licence holds.
    pub result: Option<usize>,
    /// Places of the kernel's results before this one.
    pub taken: &'a [Option<Place>],
}

impl Write<'static> {
    /// A move for a node, while its operands are read.
    pub(super) fn moved(at: usize, id: NodeId) -> Self {
        Write { at, id, result: None, taken: &[] }
    }
}

impl Placer<'_> {
    /// Whether a place lies within the elements of the input whose buffer it is in; true for other buffers. The caller's storage
    /// may hold more than the input.
    fn inside_input(&self, place: &Place, ty: &Meta) -> Result<bool> {
        let BufferKind::Input(i) = self.places.placement.buffers[place.buffer].kind else { return Ok(true) };
        let Some(own) = self.places.inputs.get(i).and_then(Option::as_ref) else { return Ok(false) };
        let size = self.facts.ty(self.facts.graph.inputs[i])?.dtype.size();
        let how = overlap_bytes(&place.layout, ty.dtype.size(), &own.layout, size);
        Ok(ty.layout.sizes.contains(&0) || matches!(how, Overlap::Same | Overlap::Inside))
    }

    /// Whether a step may write a place now, and the operand that it takes over.
    ///
    /// No value but those in `except` may lose a cell that is read later. The step's own operands must be apart from the place,
    /// unless the kernel has a licence for an operand at exactly this place.
    pub(super) fn may_write(
        &mut self,
        write: &Write<'_>,
        place: &Place,
        ty: &Meta,
        except: &[ValueId],
    ) -> Result<(Reason, Option<ValueId>)> {
        let no = |reason| Ok((reason, None));
        self.revision.in_the_way.clear();
        if !self.places.is_writable(place.buffer) || !self.inside_input(place, ty)? {
            return no(Reason::CallerVisible);
        }
        if self_overlaps(&place.layout) != Some(false) {
            return no(Reason::NotDense);
        }
        let results = self.facts.graph.nodes[write.id].results.iter().zip(write.taken);
        let taken = |(r, t): (&ValueId, &Option<Place>)| match (t, self.facts.known_type(*r)) {
            (Some(t), Some(own)) if t.buffer == place.buffer => {
                overlap_bytes(&t.layout, own.dtype.size(), &place.layout, ty.dtype.size()) != Overlap::Disjoint
            }
            (Some(t), None) => t.buffer == place.buffer,
            _ => false,
        };
        if results.into_iter().any(taken) {
            return no(Reason::PartialOverlap);
        }
        // Moves run while the node's operands are read.
        let from = if write.result.is_none() { write.at } else { write.at + 1 };
        let losers = self.places.losers(place, ty.dtype, write.at, from, except);
        self.revision.in_the_way = losers.iter().map(|l| l.0).collect();
        if let Some((u, how)) = losers.first() {
            let by = self.places.next_use(*u, from).map(|at| self.facts.graph.order[at]);
            return no(if *how == Overlap::Unknown { Reason::UnknownOverlap } else { Reason::StillRead { by } });
        }
        if write.result.is_none() {
            return no(Reason::Taken);
        }
        let node = &self.facts.graph.nodes[write.id];
        let mut touched: Vec<(ValueId, &Place, bool)> = Vec::new();
        for u in node.operands() {
            let (Some(p), Some(t)) = (self.places.find(u), self.facts.known_type(u)) else { continue };
            if p.buffer != place.buffer || t.layout.sizes.contains(&0) {
                continue;
            }
            if overlap_bytes(&p.layout, t.dtype.size(), &place.layout, ty.dtype.size()) != Overlap::Disjoint {
                let wide = if node.op.def().pointwise { p.layout.expand(&place.layout.sizes).ok() } else { None };
                let layout = wide.as_ref().unwrap_or(&p.layout);
                touched.push((u, p, index_by_index(layout, t.dtype.size(), &place.layout, ty.dtype.size())));
            }
        }
        if touched.is_empty() {
            return no(Reason::Taken);
        }
        if let (Some(call), Some(k)) = (HopCall::of(self.facts.graph, node)?, write.result)
            && let Some((_, v)) = call.takes_over(k)
            && matches!(touched[..], [(u, p, _)] if u == v && p.layout == place.layout)
        {
            return Ok((Reason::Taken, Some(v)));
        }
        let all = self.facts.licences(write.id);
        // A body may still read another operand in these cells when it writes.
        let licensed = |u: ValueId| {
            let of = |(k, _): &(usize, ValueId)| all.iter().any(|l| l.operand == *k && Some(l.result) == write.result);
            node.operands().enumerate().filter(|(_, v)| *v == u).all(|o| of(&o))
        };
        let unread = !node.op.def().fused || touched.iter().all(|t| licensed(t.0));
        for licence in all.iter().filter(|l| unread && Some(l.result) == write.result) {
            let Some(v) = node.operands().nth(licence.operand) else { continue };
            if licence.kind == ReuseKind::Trailing {
                let alone = matches!(touched[..], [(u, _, _)] if u == v);
                if alone && may_trail(self.facts.graph, write.id, licence, &self.reads(write.id), place) {
                    return Ok((Reason::Taken, Some(v)));
                }
                continue;
            }
            let Some((_, p, true)) = touched.iter().find(|t| t.0 == v) else { continue };
            let one_size = || {
                let size = |t: &(ValueId, &Place, bool)| self.facts.known_type(t.0).map(|m| m.dtype.size());
                touched.iter().all(|t| size(t) == Some(ty.dtype.size()))
            };
            let pointwise = match licence.kind {
                ReuseKind::SameIndex => true,
                ReuseKind::RowWise { .. } => one_size(),
                ReuseKind::Carried | ReuseKind::ReadsFirst | ReuseKind::Trailing => false,
            };
            // The one operand itself, or others in the same cells where the kernel goes by index.
            let others = touched.iter().filter(|t| t.0 == v).count() > 1 || touched.iter().any(|t| t.0 != v);
            let fine = if others { pointwise && touched.iter().all(|t| t.2) } else { true };
            let first = licence.kind == ReuseKind::ReadsFirst;
            if fine && (pointwise || first || p.layout == place.layout) {
                return Ok((Reason::Taken, Some(v)));
            }
        }
        self.revision.in_the_way = touched.iter().map(|t| t.0).collect();
        no(Reason::PartialOverlap)
    }
}
