//! Kernels: where their results go, and what may be written when.

use super::Placer;
use super::homes::Spot;
use super::memory::{Needed, dense};
use restride_ir::{
    Arg, Error, HopCall, Layout, Meta, Movement, NodeId, Op, Place, Reason, Remark, RemarkKind, Result, ReuseKind,
    Scalar, Type, ValueId, call_trailing_room, trailing_room,
};
use restride_tensor::{Overlap, index_by_index, overlap_bytes, self_overlaps};

/// What is about to be written.
pub(super) struct Write<'a> {
    /// Position of the node.
    pub at: usize,
    pub id: NodeId,
    /// Which result of its kernel; `None` for a move, for which no licence holds.
    pub result: Option<usize>,
    /// Places of the kernel's results before this one.
    pub taken: &'a [Option<Place>],
}

impl Placer<'_> {
    /// Arguments for a rule, with operands' types as given by `meta`.
    pub(super) fn metas(&self, id: NodeId, meta: impl Fn(ValueId) -> Result<Meta>) -> Result<Vec<Arg<Meta, Scalar>>> {
        self.graph.nodes[id]
            .args
            .iter()
            .map(|a| {
                a.try_map(
                    |v| meta(*v),
                    |e| {
                        e.constant()
                            .ok_or_else(|| Error::unsupported(format!("the number {e} is not known before the run")))
                    },
                )
            })
            .collect()
    }

    pub(super) fn remark(&mut self, node: NodeId, kind: RemarkKind, reason: Reason, bytes: i64, over: Option<ValueId>) {
        let told = match kind {
            // The value that is made here; of parts and sources it is said which.
            RemarkKind::AssembleInPlace | RemarkKind::SourceInRegion => reason != Reason::Taken,
            _ => false,
        };
        if told {
            let made = self.graph.nodes[node].results.iter().map(|r| (*r, kind));
            self.declined.extend(made);
        }
        self.remarks.push(Remark { graph: self.id, node, kind, reason, bytes, over });
    }

    /// What became of a wish. That a part is in its place is said where the whole is put together.
    pub(super) fn remark_home(
        &mut self,
        id: NodeId,
        kind: &Option<RemarkKind>,
        reason: Reason,
        bytes: i64,
        over: Option<ValueId>,
    ) {
        match kind {
            None => {}
            Some(RemarkKind::AssembleInPlace) if reason == Reason::Taken => {}
            Some(kind) => self.remark(id, *kind, reason, bytes, over),
        }
    }

    pub(super) fn bytes_of(&self, v: ValueId) -> i64 {
        self.types[v].as_ref().map_or(0, |t| t.layout.numel().saturating_mul(t.dtype.size() as i64))
    }

    /// Whether the value is needed after the node at `at`.
    pub(super) fn outlives(&self, v: ValueId, at: usize) -> bool {
        self.last_use[v] > at
    }

    /// The next node that reads a value after `at`; `None` for the caller.
    pub(super) fn reader(&self, v: ValueId, at: usize) -> Option<NodeId> {
        let uses = &self.uses[v];
        uses.get(uses.partition_point(|u| *u <= at)).map(|u| self.graph.order[*u])
    }

    /// A node with a kernel: each result where it is wanted, on an operand, or in memory of its own.
    pub(super) fn kernel(&mut self, at: usize, id: NodeId) -> Result<()> {
        let node = &self.graph.nodes[id];
        // What is left of compositions by lowering is composed by the executor.
        if matches!(node.op.def().kernel, restride_ir::Kernel::None) && node.op.def().composed.is_none() {
            return Err(Error::unsupported(format!("{} has no kernel", node.op))
                .help("restride ops lists the operators that can be run"));
        }
        // Eager strides matter to an operator that reads them: its operands are looked at where eager has them.
        if node.op.def().strided {
            for v in node.operands().collect::<Vec<_>>() {
                let eager = self.ty(v)?.clone();
                let strides = self.memory.place(v).map(|p| p.layout.strides.clone());
                if strides.is_some_and(|s| s != eager.layout.strides) {
                    self.eager_copy(id, v, &eager)?;
                }
            }
        }
        if let (Some(Arg::Value(from)), Some(Movement::Same | Movement::View(_))) =
            (node.args.first(), node.op.def().movement)
        {
            // A copy that only moves elements: into another shape, or all of them where views are switched off.
            let reason = if self.options.views { Reason::NoStrides } else { Reason::SwitchedOff };
            let bytes = node.results.iter().map(|r| self.bytes_of(*r)).sum();
            self.remark(id, RemarkKind::ViewOnBase, reason, bytes, Some(*from));
        }
        let results = self.graph.nodes[id].results.clone();
        let mut writes: Vec<Option<Place>> = Vec::new();
        for (k, &r) in results.iter().enumerate() {
            if !matches!(self.graph.values[r].ty, Type::Tensor(_)) {
                writes.push(None);
                continue;
            }
            let ty = self.ty(r)?.clone();
            let place = self.result(at, id, k, r, &writes)?;
            self.settle(r, place.clone(), ty.dtype)?;
            writes.push(Some(place));
        }
        self.run_step(id, writes);
        Ok(())
    }

    /// The place of what a kernel or a loop leaves.
    pub(super) fn result(
        &mut self,
        at: usize,
        id: NodeId,
        k: usize,
        r: ValueId,
        taken: &[Option<Place>],
    ) -> Result<Place> {
        let ty = self.ty(r)?.clone();
        let write = Write { at, id, result: Some(k), taken };
        let layout = match self.wished(&write, r, &ty)? {
            Spot::At(place) => return Ok(place),
            Spot::Fresh(layout) => layout,
        };
        if !self.avoids(r)
            && let Some(place) = self.on_operand(&write, r, &ty)?
        {
            self.chose(r, 0);
            return Ok(place);
        }
        let layout = if layout == dense(&ty) { self.liked(at, id, r, layout)? } else { layout };
        Ok(self.memory.fresh_as(layout, ty.dtype))
    }

    /// The place of an operand that dies here and that the result may take over.
    fn on_operand(&mut self, write: &Write<'_>, r: ValueId, ty: &Meta) -> Result<Option<Place>> {
        let node = &self.graph.nodes[write.id];
        let op = node.op;
        let bytes = self.bytes_of(r);
        let mut candidates: Vec<(ReuseKind, ValueId)> = Vec::new();
        for licence in op.def().reuse.iter().filter(|l| Some(l.result as usize) == write.result) {
            let Some(Arg::Value(v)) = node.args.get(licence.arg as usize) else { continue };
            // Most calls of such an operator cannot, and nothing is to be said of them.
            if licence.kind != ReuseKind::Trailing
                || call_trailing_room(self.graph, write.id, &self.reads(write.id)).is_some()
            {
                candidates.push((licence.kind, *v));
            }
        }
        if let (Some(call), Some(k)) = (HopCall::of(self.graph, node)?, write.result) {
            candidates.extend(call.takes_over(k).map(|(_, v)| (ReuseKind::Carried, v)));
        }
        let mut declined = None;
        for (kind, v) in candidates {
            let Some(place) = self.memory.place(v).cloned() else { continue };
            let lying = match kind {
                ReuseKind::Trailing => Ok(Place { layout: trailing(&place.layout, ty), buffer: place.buffer }),
                _ => self.lying_on(op, kind, v, &place, r, ty)?,
            };
            let reason = match lying {
                _ if !self.options.reuse || self.skips(write.at) => Reason::SwitchedOff,
                Err(reason) => reason,
                Ok(_) if self.memory.may_write(place.buffer) && self.outlives(v, write.at) => {
                    Reason::StillRead { by: self.reader(v, write.at) }
                }
                Ok(place) => {
                    let reason = self.may_write(write, &place, ty, &[])?.0;
                    if reason == Reason::Taken {
                        self.remark(write.id, RemarkKind::ReuseOperand, Reason::Taken, bytes, Some(v));
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

    /// How a result lies where an operand does, index by index.
    fn lying_on(
        &self,
        op: Op,
        kind: ReuseKind,
        v: ValueId,
        place: &Place,
        r: ValueId,
        ty: &Meta,
    ) -> Result<std::result::Result<Place, Reason>> {
        let have = self.ty(v)?.dtype.size();
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
            // Narrower elements keep the memory of the wider ones: that is for what is widened again at once.
            let widened = || match &self.uses[r][..] {
                &[at] => {
                    let next = &self.graph.nodes[self.graph.order[at]];
                    next.op.def().reuse.iter().any(|l| {
                        let of = |w: &ValueId| self.types[*w].as_ref().is_some_and(|t| t.dtype.size() == have);
                        l.kind == ReuseKind::SameIndex
                            && matches!(next.args.get(l.arg as usize), Some(Arg::Value(a)) if *a == r)
                            && next.results.get(l.result as usize).is_some_and(of)
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
            let buffer = &self.memory.placement.buffers[place.buffer];
            let inside = layout.cell_range().end.saturating_mul(to) <= buffer.bytes;
            if !inside || !index_by_index(&narrow, have, &layout, size) {
                return Ok(Err(Reason::DTypeDiffers));
            }
        }
        Ok(Ok(Place { buffer: place.buffer, layout }))
    }

    /// Whether a step may write a place now: nobody may lose a cell that is read later, but for the values in `except`,
    /// and the step's own operands must be apart from it, unless its kernel has a licence for one that lies exactly there.
    /// With the answer comes the operand that is taken over.
    pub(super) fn may_write(
        &mut self,
        write: &Write<'_>,
        place: &Place,
        ty: &Meta,
        except: &[ValueId],
    ) -> Result<(Reason, Option<ValueId>)> {
        let no = |reason| Ok((reason, None));
        self.in_the_way.clear();
        if !self.memory.may_write(place.buffer) {
            return no(Reason::CallerVisible);
        }
        if self_overlaps(&place.layout) != Some(false) {
            return no(Reason::NotDense);
        }
        if write.taken.iter().flatten().any(|t| t.buffer == place.buffer) {
            return no(Reason::PartialOverlap);
        }
        let needed = Needed { last_use: &self.last_use, at: write.at, reading: write.result.is_none() };
        let losers = self.memory.losers(place.buffer, &place.layout, ty.dtype, needed, except);
        self.in_the_way = losers.iter().map(|l| l.0).collect();
        if let Some((u, how)) = losers.first() {
            let from = if write.result.is_none() { write.at.saturating_sub(1) } else { write.at };
            return no(match how {
                Overlap::Unknown => Reason::UnknownOverlap,
                _ => Reason::StillRead { by: self.reader(*u, from) },
            });
        }
        if write.result.is_none() {
            return no(Reason::Taken);
        }
        let node = &self.graph.nodes[write.id];
        let mut touched: Vec<(ValueId, &Place, bool)> = Vec::new();
        for u in node.operands() {
            let (Some(p), Some(t)) = (self.memory.place(u), &self.types[u]) else { continue };
            if p.buffer != place.buffer || t.layout.sizes.contains(&0) {
                continue;
            }
            if overlap_bytes(&p.layout, t.dtype.size(), &place.layout, ty.dtype.size()) != Overlap::Disjoint {
                let lies = if node.op.def().pointwise { p.layout.expand(&place.layout.sizes).ok() } else { None };
                let lies = lies.as_ref().unwrap_or(&p.layout);
                touched.push((u, p, index_by_index(lies, t.dtype.size(), &place.layout, ty.dtype.size())));
            }
        }
        if touched.is_empty() {
            return no(Reason::Taken);
        }
        if let (Some(call), Some(k)) = (HopCall::of(self.graph, node)?, write.result)
            && let Some((_, v)) = call.takes_over(k)
            && matches!(touched[..], [(u, p, _)] if u == v && p.layout == place.layout)
        {
            return Ok((Reason::Taken, Some(v)));
        }
        for licence in node.op.def().reuse.iter().filter(|l| Some(l.result as usize) == write.result) {
            let Some(Arg::Value(v)) = node.args.get(licence.arg as usize) else { continue };
            if licence.kind == ReuseKind::Trailing {
                let alone = matches!(touched[..], [(u, _, _)] if u == *v);
                let room = || trailing_room(self.graph, write.id, licence, &self.reads(write.id), place);
                if alone && room().is_some() {
                    return Ok((Reason::Taken, Some(*v)));
                }
                continue;
            }
            let Some((_, p, true)) = touched.iter().find(|t| t.0 == *v) else { continue };
            let one_size = || {
                let size = |t: &(ValueId, &Place, bool)| self.types[t.0].as_ref().map(|m| m.dtype.size());
                touched.iter().all(|t| size(t) == Some(ty.dtype.size()))
            };
            let pointwise = match licence.kind {
                ReuseKind::SameIndex => true,
                ReuseKind::RowWise { .. } => one_size(),
                ReuseKind::Carried | ReuseKind::ReadsFirst | ReuseKind::Trailing => false,
            };
            // The one operand itself, or others that lie cell for cell like it where the kernel goes by index.
            let others = touched.iter().filter(|t| t.0 == *v).count() > 1 || touched.iter().any(|t| t.0 != *v);
            let fine = if others { pointwise && touched.iter().all(|t| t.2) } else { true };
            let first = licence.kind == ReuseKind::ReadsFirst;
            if fine && (pointwise || first || p.layout == place.layout) {
                return Ok((Reason::Taken, Some(*v)));
            }
        }
        self.in_the_way = touched.iter().map(|t| t.0).collect();
        no(Reason::PartialOverlap)
    }
}

/// How a result lies on an operand's last cells.
fn trailing(operand: &Layout, ty: &Meta) -> Layout {
    let offset = operand.offset + operand.numel() - ty.layout.numel();
    Layout { offset, ..Layout::contiguous(&ty.layout.sizes) }
}
