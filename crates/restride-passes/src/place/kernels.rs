//! Kernels: each result goes to a hinted place, onto an operand that dies, or into memory of its own.

use super::Placer;
use super::hints::HintTarget;
use super::overwrite::Write;
use super::places::default_layout;
use restride_ir::{
    Arg, Error, HopCall, Kernel, Layout, Meta, Movement, NodeId, Op, Place, Reason, RemarkKind, Result, ReuseKind,
    Step, ValueId, call_may_trail,
};
use restride_tensor::index_by_index;

impl Placer<'_> {
    /// Places the results of a node with a kernel: at a hinted place, on an operand, or in memory of their own.
    pub(super) fn place_kernel(&mut self, at: usize, id: NodeId) -> Result<()> {
        let facts = self.facts;
        let node = &facts.graph.nodes[id];
        let def = node.op.def();
        // The executor composes the compositions that lowering leaves.
        if matches!(def.kernel, Kernel::None) && def.composed.is_none() && !def.fused {
            return Err(Error::unsupported(format!("{} has no kernel", node.op))
                .help("restride ops lists the operators that can be run"));
        }
        // An operator that reads strides is given operands with the strides of eager PyTorch.
        if def.strided {
            for v in node.operands() {
                let eager = facts.ty(v)?;
                if self.places.find(v).is_some_and(|p| p.layout.strides != eager.layout.strides) {
                    self.eager_copy(id, v, eager)?;
                }
            }
        }
        if let (Some(Arg::Value(from)), Some(Movement::Same | Movement::View(_))) = (node.args.first(), def.movement) {
            // A copy that only moves elements: into another shape, or all of them where views are switched off.
            let reason = if self.options.views { Reason::NoStrides } else { Reason::SwitchedOff };
            self.remark(id, RemarkKind::ViewOnBase, reason, facts.result_bytes(id), Some(*from));
        }
        let mut writes: Vec<Option<Place>> = Vec::with_capacity(node.results.len());
        for (k, &r) in node.results.iter().enumerate() {
            if !facts.is_tensor(r) {
                writes.push(None);
                continue;
            }
            let dtype = facts.ty(r)?.dtype;
            let place = self.result_place(at, id, k, r, &writes)?;
            self.settle(r, place.clone(), dtype)?;
            writes.push(Some(place));
        }
        self.push_run(id, writes);
        if matches!(def.kernel, Kernel::Collective(_)) {
            self.hold_operands(id);
        }
        Ok(())
    }

    /// Keeps the operand of an exchange as it is until the wait, unless the result is in its place.
    fn hold_operands(&mut self, id: NodeId) {
        let graph = self.facts.graph;
        let node = &graph.nodes[id];
        let awaits = |at: &&usize| graph.nodes[graph.order[**at]].op.def().awaits;
        let wait = node.results.first().and_then(|r| self.facts.uses[*r].iter().find(awaits).copied());
        let (Some(wait), Some(&r)) = (wait, node.results.first()) else { return };
        for v in node.operands() {
            if self.places.find(v) != self.places.find(r) {
                self.places.hold(v, wait);
            }
        }
        self.holds.insert(graph.order[wait], self.reads(id));
    }

    /// Adds the step that waits for an exchange: at the place of its result, with the operands held at the places where the
    /// exchange reads them.
    pub(super) fn push_wait(&mut self, id: NodeId) {
        let node = &self.facts.graph.nodes[id];
        let mut reads: Vec<Option<Place>> = node.operands().take(1).map(|v| self.places.find(v).cloned()).collect();
        reads.extend(self.holds.get(&id).into_iter().flatten().cloned());
        let writes = node.results.iter().map(|r| self.places.find(*r).cloned()).collect();
        self.places.placement.steps.push(Step::Run { node: id, reads, writes });
    }

    /// The place of the `k`-th result of a kernel or a loop, whose results before it are at `taken`.
    pub(super) fn result_place(
        &mut self,
        at: usize,
        id: NodeId,
        k: usize,
        r: ValueId,
        taken: &[Option<Place>],
    ) -> Result<Place> {
        let ty = self.facts.ty(r)?;
        let write = Write { at, id, result: Some(k), taken };
        let layout = match self.preferred(&write, r, ty)? {
            HintTarget::At(place) => return Ok(place),
            HintTarget::Fresh(layout) => layout,
        };
        if !self.revision.avoids(r)
            && let Some(place) = self.on_operand(&write, r, ty)?
        {
            self.revision.chose(r, 0);
            return Ok(place);
        }
        let layout = match self.facts.layouts[r].is_none() && layout == default_layout(ty) {
            true => self.layout_for_readers(at, id, r, layout)?,
            false => layout,
        };
        Ok(self.places.fresh(layout, ty.dtype))
    }

    /// The place of an operand that dies here and that the result may take over.
    fn on_operand(&mut self, write: &Write<'_>, r: ValueId, ty: &Meta) -> Result<Option<Place>> {
        let node = &self.facts.graph.nodes[write.id];
        let op = node.op;
        let bytes = self.facts.bytes_of(r);
        let mut candidates: Vec<(ReuseKind, ValueId)> = Vec::new();
        for licence in self.facts.licences(write.id).iter().filter(|l| Some(l.result) == write.result) {
            let Some(v) = node.operands().nth(licence.operand) else { continue };
            // Most calls of such an operator cannot, which is worth no remark.
            if licence.kind != ReuseKind::Trailing || call_may_trail(self.facts.graph, write.id, &self.reads(write.id))
            {
                candidates.push((licence.kind, v));
            }
        }
        if let (Some(call), Some(k)) = (HopCall::of(self.facts.graph, node)?, write.result) {
            candidates.extend(call.takes_over(k).map(|(_, v)| (ReuseKind::Carried, v)));
        }
        let mut declined = None;
        for (kind, v) in candidates {
            let Some(place) = self.places.find(v).cloned() else { continue };
            let on = match kind {
                ReuseKind::Trailing => Ok(Place { layout: trailing(&place.layout, ty), buffer: place.buffer }),
                _ => self.layout_on(op, kind, v, &place, r, ty)?,
            };
            let reason = match on {
                _ if !self.options.reuse || self.skips(write.at) => Reason::SwitchedOff,
                Err(reason) => reason,
                Ok(_) if self.places.is_writable(place.buffer) && self.places.outlives(v, write.at) => {
                    Reason::StillRead { by: self.reader(v, write.at) }
                }
                Ok(place) => {
                    let reason = self.may_write(write, &place, ty, &[])?.0;
                    if reason == Reason::Taken {
                        self.remark(write.id, RemarkKind::ReuseOperand, Reason::Taken, bytes, Some(v));
                        self.places.inherit(r, v);
                        return Ok(Some(place));
                    }
                    reason
                }
            };
            declined.get_or_insert((reason, v));
        }
        if let Some((reason, v)) = declined {
            self.remark(write.id, RemarkKind::ReuseOperand, reason, bytes, Some(v));
        }
        Ok(None)
    }

    /// The place of a result index by index on an operand that is stored at `place`; else the reason why there is none.
    fn layout_on(
        &self,
        op: Op,
        kind: ReuseKind,
        v: ValueId,
        place: &Place,
        r: ValueId,
        ty: &Meta,
    ) -> Result<std::result::Result<Place, Reason>> {
        let have = self.facts.ty(v)?.dtype.size();
        let size = ty.dtype.size();
        let mut layout = place.layout.clone();
        if layout.sizes != ty.layout.sizes {
            // The same elements, with dimensions of size 1 before them.
            let fits = op.def().pointwise && layout.numel() == ty.layout.numel();
            match layout.expand(&ty.layout.sizes) {
                Ok(wide) if fits => layout = wide,
                _ => return Ok(Err(Reason::SizesDiffer)),
            }
        }
        if have != size {
            // Narrower elements keep the memory of the wider ones, which is right for a result that is widened again at once.
            let widened = || match &self.places.uses[r][..] {
                &[at] => {
                    let id = self.facts.graph.order[at];
                    let next = &self.facts.graph.nodes[id];
                    self.facts.licences(id).iter().any(|l| {
                        let of = |w: &ValueId| self.facts.known_type(*w).is_some_and(|t| t.dtype.size() == have);
                        l.kind == ReuseKind::SameIndex
                            && next.operands().nth(l.operand) == Some(r)
                            && next.results.get(l.result).is_some_and(of)
                    })
                }
                _ => false,
            };
            let (from, to) = (have as i64, size as i64);
            let whole = |cells: i64| cells * from % to == 0;
            let strides = (0..layout.rank()).filter(|d| layout.sizes[*d] > 1).all(|d| whole(layout.strides[d]));
            if kind != ReuseKind::SameIndex || size < have && !widened() || !strides || !whole(layout.offset) {
                return Ok(Err(Reason::DTypeDiffers));
            }
            let narrow = layout.clone();
            layout.strides.iter_mut().for_each(|s| *s = *s * from / to);
            layout.offset = layout.offset * from / to;
            let buffer = &self.places.placement.buffers[place.buffer];
            let inside = layout.cell_range().end.saturating_mul(to) <= buffer.bytes;
            if !inside || !index_by_index(&narrow, have, &layout, size) {
                return Ok(Err(Reason::DTypeDiffers));
            }
        }
        Ok(Ok(Place { buffer: place.buffer, layout }))
    }
}

/// The layout of a result on an operand's last cells.
fn trailing(operand: &Layout, ty: &Meta) -> Layout {
    let offset = operand.offset + operand.numel() - ty.layout.numel();
    Layout { offset, ..Layout::contiguous(&ty.layout.sizes) }
}
