//! The border to the caller: inputs where the caller has them, and outputs moved to where the caller looks.

use super::Placer;
use super::assemble::is_at;
use super::places::default_layout;
use restride_ir::{
    BufferId, BufferKind, CollectTree, Error, InputKind, Layout, Meta, NodeId, Place, Reason, RemarkKind, Result,
    ValueId, border_layout,
};
use restride_tensor::{Overlap, overlap_bytes};
use std::collections::{BTreeMap, BTreeSet};

/// A move that is still to be made.
struct PendingMove {
    value: ValueId,
    ty: Meta,
    from: Place,
    to: Place,
}

/// Why values that the caller gets are not computed where the caller looks.
#[derive(Default)]
struct Said {
    /// The nodes that make these values.
    makers: BTreeMap<ValueId, NodeId>,
    /// Nodes whose remarks say why.
    missed: BTreeSet<(NodeId, RemarkKind)>,
}

impl Placer<'_> {
    /// Stores each tensor input in the memory that the caller gives, or moves it into the arena.
    pub(super) fn place_inputs(&mut self) -> Result<()> {
        let facts = self.facts;
        for (i, &v) in facts.graph.inputs.iter().enumerate() {
            let kind = if facts.boundary.body { None } else { Some(&facts.program.signature.inputs[i].kind) };
            if !facts.is_tensor(v) || matches!(kind, Some(InputKind::Opaque(_))) {
                continue;
            }
            let ty = facts.ty(v)?;
            let layout = if facts.boundary.body { border_layout(ty) } else { ty.layout.clone() };
            let mut place = self.places.new_buffer(BufferKind::Input(i), layout, ty.dtype);
            let buffer = place.buffer;
            self.places.inputs[i] = Some(place.clone());
            let read = !self.places.uses[v].is_empty() || facts.handed(v).is_some();
            if self.options.inputs_in_arena && read && matches!(kind, Some(InputKind::User(_))) {
                let inside = self.places.fresh(default_layout(ty), ty.dtype);
                self.places.push_move(v, place, inside.clone());
                place = inside;
            }
            self.settle(v, place, ty.dtype)?;
            self.places.set_writable(buffer, facts.boundary.becomes[i].is_some());
        }
        Ok(())
    }

    /// The place of an output in the caller's memory, made at the first call.
    pub(super) fn output_place(&mut self, i: usize, v: ValueId) -> Result<Place> {
        if let Some(place) = self.places.outputs.get(&i) {
            return Ok(place.clone());
        }
        let ty = self.facts.ty(v)?;
        let place = self.places.new_buffer(BufferKind::Output(i), border_layout(ty), ty.dtype);
        self.places.outputs.insert(i, place.clone());
        Ok(place)
    }

    /// Moves outputs and new contents of inputs to their places. A move may overwrite the source of another one (inputs that
    /// are swapped): moves are ordered, and a copy breaks each cycle.
    pub(super) fn move_outputs(&mut self) -> Result<()> {
        let facts = self.facts;
        let said = self.said();
        let mut pending = Vec::new();
        for &(i, v) in &facts.boundary.outputs {
            let to = self.output_place(i, v)?;
            self.enqueue(&mut pending, v, to, RemarkKind::OutputInCaller, &said)?;
        }
        for (i, v) in facts.boundary.becomes.iter().enumerate() {
            let Some(v) = *v else { continue };
            let to = self.places.inputs.get(i).cloned().flatten();
            let to = to.ok_or_else(|| Error::invalid("a mutated input without memory"))?;
            self.enqueue(&mut pending, v, to, RemarkKind::WriteBack, &said)?;
        }
        // Most moves overwrite no source.
        let sources: BTreeSet<BufferId> = pending.iter().map(|p| p.from.buffer).collect_set();
        let (mut pending, free): (Vec<_>, Vec<_>) = pending.into_iter().partition(|p| sources.contains(&p.to.buffer));
        free.into_iter().for_each(|p| self.places.push_move(p.value, p.from, p.to));
        while !pending.is_empty() {
            let overwrites = |k: &PendingMove, p: &PendingMove| hits(&k.to, &k.ty, &p.from, &p.ty);
            // A move within one buffer onto cells that it still reads is not free either.
            let free = pending.iter().position(|k| !pending.iter().any(|p| overwrites(k, p)));
            if let Some(k) = free {
                let p = pending.remove(k);
                self.places.push_move(p.value, p.from, p.to);
                continue;
            }
            // Every move overwrites the source of another one: one source is taken aside.
            let p = &mut pending[0];
            let ty = Meta { dtype: p.ty.dtype, layout: Layout::contiguous(&p.ty.layout.sizes) };
            let aside = self.places.fresh(border_layout(&ty), ty.dtype);
            let from = std::mem::replace(&mut p.from, aside.clone());
            self.places.push_move(p.value, from, aside);
        }
        Ok(())
    }

    /// The nodes of values that the caller gets, and the remarks on why they are not computed in the caller's memory.
    fn said(&self) -> Said {
        let made = self.facts.graph.ordered().flat_map(|(id, n)| n.results.iter().map(move |r| (*r, id)));
        let makers = made.filter(|(r, _)| self.facts.handed(*r).is_some()).collect_map();
        let boundary = |k: RemarkKind| matches!(k, RemarkKind::WriteBack | RemarkKind::OutputInCaller);
        let missed = self.decisions.remarks.iter().filter(|m| m.missed() && boundary(m.kind));
        Said { makers, missed: missed.map(|m| (m.node, m.kind)).collect_set() }
    }

    fn enqueue(
        &mut self,
        pending: &mut Vec<PendingMove>,
        v: ValueId,
        to: Place,
        kind: RemarkKind,
        said: &Said,
    ) -> Result<()> {
        let ty = self.facts.ty(v)?.clone();
        let from = self.places.find(v).cloned().ok_or_else(|| Error::invalid("an output without a place"))?;
        if !is_at(&from, &to) {
            if let Some(&maker) = said.makers.get(&v)
                && !said.missed.contains(&(maker, kind))
            {
                self.remark(maker, kind, Reason::MadeElsewhere, self.facts.bytes_of(v), None);
            }
            pending.push(PendingMove { value: v, ty, from, to });
        }
        Ok(())
    }
}

fn hits(to: &Place, to_ty: &Meta, from: &Place, from_ty: &Meta) -> bool {
    to.buffer == from.buffer
        && overlap_bytes(&to.layout, to_ty.dtype.size(), &from.layout, from_ty.dtype.size()) != Overlap::Disjoint
}
