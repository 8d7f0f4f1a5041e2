//! The end of a run: what the caller gets is moved to where the caller looks, unless it is there already.

use super::Placer;
use super::assemble::there;
use restride_ir::{
    Buffer, BufferId, BufferKind, Error, Meta, NodeId, Place, Reason, RemarkKind, Result, Step, ValueId, border_layout,
    layout_bytes,
};
use restride_tensor::{Overlap, overlap_bytes};
use std::collections::{BTreeMap, BTreeSet};

/// A move that is still to be made.
struct Pending {
    value: ValueId,
    ty: Meta,
    from: Place,
    to: Place,
}

/// What was decided about what the caller gets.
#[derive(Default)]
struct Said {
    makers: BTreeMap<ValueId, NodeId>,
    missed: BTreeSet<(NodeId, RemarkKind)>,
}

impl Placer<'_> {
    /// Moves outputs and new contents of inputs to their places. Moves may hit what others still read (a swap of inputs, a
    /// value made in memory that another one is wanted in): they are ordered, and a cycle is broken by a copy.
    pub(super) fn finish(&mut self) -> Result<()> {
        let said = self.said();
        let mut pending = Vec::new();
        for (i, v) in self.boundary.outputs.clone() {
            let to = self.output_place(i, v)?;
            self.enqueue(&mut pending, v, to, RemarkKind::OutputInCaller, &said)?;
        }
        for (i, v) in self.boundary.becomes.clone().into_iter().enumerate() {
            let Some(v) = v else { continue };
            let to = self.input_place(i).ok_or_else(|| Error::invalid("a mutated input without memory"))?;
            self.enqueue(&mut pending, v, to, RemarkKind::WriteBack, &said)?;
        }
        // Most are written where nobody reads.
        let sources: BTreeSet<BufferId> = pending.iter().map(|p| p.from.buffer).collect();
        let (mut pending, free): (Vec<_>, Vec<_>) = pending.into_iter().partition(|p| sources.contains(&p.to.buffer));
        for p in free {
            self.memory.placement.steps.push(Step::Move { value: p.value, from: p.from.into(), to: p.to.into() });
        }
        while !pending.is_empty() {
            let free = (0..pending.len()).find(|&k| {
                pending.iter().enumerate().all(|(j, p)| j == k || !hits(&pending[k].to, &pending[k].ty, &p.from, &p.ty))
                    && !partly(&pending[k])
            });
            let k = match free {
                Some(k) => k,
                None => {
                    // Every move overwrites what another one reads: take one source aside.
                    let p = &mut pending[0];
                    let layout = border_layout(&Meta {
                        dtype: p.ty.dtype,
                        layout: restride_ir::Layout::contiguous(&p.ty.layout.sizes),
                    });
                    let bytes = layout_bytes(&layout, p.ty.dtype.size());
                    let buffer = self.memory.add(Buffer { kind: BufferKind::Arena, bytes });
                    let aside = Place { buffer, layout };
                    self.memory.placement.steps.push(Step::Move {
                        value: p.value,
                        from: p.from.clone().into(),
                        to: aside.clone().into(),
                    });
                    p.from = aside;
                    continue;
                }
            };
            let p = pending.remove(k);
            self.memory.placement.steps.push(Step::Move { value: p.value, from: p.from.into(), to: p.to.into() });
        }
        Ok(())
    }

    /// The nodes of values that the caller gets, and what was said of why they are not computed there.
    fn said(&self) -> Said {
        let mut said = Said::default();
        for (id, node) in self.graph.ordered() {
            for r in node.results.iter().filter(|r| self.wanted.contains_key(r)) {
                said.makers.insert(*r, id);
            }
        }
        let boundary = |k: RemarkKind| matches!(k, RemarkKind::WriteBack | RemarkKind::OutputInCaller);
        let missed = self.remarks.iter().filter(|m| m.missed() && boundary(m.kind));
        said.missed = missed.map(|m| (m.node, m.kind)).collect();
        said
    }

    fn enqueue(
        &mut self,
        pending: &mut Vec<Pending>,
        v: ValueId,
        to: Place,
        kind: RemarkKind,
        said: &Said,
    ) -> Result<()> {
        let ty = self.ty(v)?.clone();
        let from = self.memory.place(v).cloned().ok_or_else(|| Error::invalid("an output without a place"))?;
        if !there(&from, &to) {
            if let Some(&maker) = said.makers.get(&v)
                && !said.missed.contains(&(maker, kind))
            {
                self.remark(maker, kind, Reason::MadeElsewhere, self.bytes_of(v), None);
            }
            pending.push(Pending { value: v, ty, from, to });
        }
        Ok(())
    }
}

fn hits(to: &Place, to_ty: &Meta, from: &Place, from_ty: &Meta) -> bool {
    to.buffer == from.buffer
        && overlap_bytes(&to.layout, to_ty.dtype.size(), &from.layout, from_ty.dtype.size()) != Overlap::Disjoint
}

/// A move within one buffer onto cells that it still reads.
fn partly(p: &Pending) -> bool {
    hits(&p.to, &p.ty, &p.from, &p.ty)
}
