//! Nodes that only move data.

use super::Placer;
use super::assemble::there;
use super::memory::{Needed, dense};
use restride_ir::{
    Arg, Error, Layout, Meta, Movement, NodeId, Place, Reason, RemarkKind, Result, Step, TensorType, ValueId,
    ViewOutcome,
};
use restride_tensor::{Overlap, overlap_bytes, self_overlaps};

impl Placer<'_> {
    /// A node that only moves data: in place where it can be, by moves otherwise. False if the node is none.
    pub(super) fn moved(&mut self, at: usize, id: NodeId) -> Result<bool> {
        match self.graph.nodes[id].op.def().movement {
            None | Some(Movement::View(_)) => Ok(false),
            Some(Movement::Same) => self.same(at, id),
            Some(Movement::Scatter { base, src, region }) => {
                let node = &self.graph.nodes[id];
                let (Some(Arg::Value(b)), Some(Arg::Value(s))) =
                    (node.args.get(base as usize), node.args.get(src as usize))
                else {
                    return Ok(false);
                };
                let (b, s) = (*b, *s);
                if self.ty(b)?.dtype != self.ty(s)?.dtype {
                    return Ok(false);
                }
                self.scatter(at, id, b, s, region)
            }
            Some(Movement::Assemble(pieces)) => self.assemble(at, id, pieces),
        }
    }

    /// `clone` and its like: the elements are there already.
    fn same(&mut self, at: usize, id: NodeId) -> Result<bool> {
        let node = &self.graph.nodes[id];
        let (Some(Arg::Value(from)), [r]) = (node.args.first(), &node.results[..]) else { return Ok(false) };
        let (from, r) = (*from, *r);
        let (have, want) = (self.ty(from)?.clone(), self.ty(r)?.clone());
        let Some(place) = self.memory.place(from).cloned() else { return Ok(false) };
        if have.dtype != want.dtype || have.layout.numel() != want.layout.numel() {
            return Ok(false);
        }
        let layout = if self.options.views { place.layout.view(&want.layout.sizes) } else { None };
        if let Some(layout) = layout.filter(|_| !self.avoids(r)) {
            // It may turn out to be in the way of what changes the original.
            self.chose(r, self.bytes_of(r));
            self.settle(r, Place { buffer: place.buffer, layout }, want.dtype)?;
            self.memory.placement.steps.push(Step::Free { node: id });
            self.remark(id, RemarkKind::ViewOnBase, Reason::Taken, self.bytes_of(r), Some(from));
            return Ok(true);
        }
        if have.layout.sizes != want.layout.sizes {
            // Another shape than strides can express: the kernel takes elements in logical order.
            return Ok(false);
        }
        let reason = if self.options.views { Reason::InTheWay } else { Reason::SwitchedOff };
        self.remark(id, RemarkKind::ViewOnBase, reason, self.bytes_of(r), Some(from));
        let to = self.home(at, id, r)?;
        self.settle(r, to.clone(), want.dtype)?;
        self.memory.placement.steps.push(Step::Move { value: from, from: place.into(), to: to.into() });
        self.memory.placement.steps.push(Step::Free { node: id });
        Ok(true)
    }

    /// The region of a scatter on a base that lies as `place` says.
    pub(super) fn region_of(
        &self,
        id: NodeId,
        base: ValueId,
        rule: &restride_ir::ViewRule,
        place: &Layout,
    ) -> Result<Option<Layout>> {
        let strided = self.graph.nodes[id].op.def().strided;
        let eager = self.ty(base)?.clone();
        let ty = |layout: &Layout| TensorType { dtype: eager.dtype, layout: layout.clone() };
        let on = |layout: &Layout| -> Result<Option<Layout>> {
            let args = self.metas(id, |v| if v == base { Ok(ty(layout)) } else { Ok(self.ty(v)?.clone()) })?;
            Ok(match rule.of(&args)? {
                ViewOutcome::Views(v) => v.first().map(|m| m.layout.clone()),
                _ => None,
            })
        };
        if !strided {
            return on(place);
        }
        let same = (0..place.rank()).all(|d| place.sizes[d] <= 1 || place.strides[d] == eager.layout.strides[d]);
        if !same {
            return Ok(None);
        }
        Ok(on(&eager.layout)?.map(|mut l| {
            l.offset += place.offset - eager.layout.offset;
            l
        }))
    }

    fn scatter(
        &mut self,
        at: usize,
        id: NodeId,
        base: ValueId,
        src: ValueId,
        rule: restride_ir::ViewRule,
    ) -> Result<bool> {
        let r = self.graph.nodes[id].results[0];
        let ty = self.ty(r)?.clone();
        let place = self.memory.place(base).cloned().ok_or_else(|| Error::invalid("a value without a place"))?;
        let from = self.memory.place(src).cloned().ok_or_else(|| Error::invalid("a value without a place"))?;
        let bytes = self.bytes_of(base);
        if self.region_of(id, base, &rule, &ty.layout)?.is_some_and(|r| self_overlaps(&r) != Some(false)) {
            // Which element stays in a cell is the kernel's business.
            return Ok(false);
        }
        let mut reason = Reason::SwitchedOff;
        if self.options.scatter
            && let Some(region) = self.region_of(id, base, &rule, &place.layout)?
        {
            let to = Place { buffer: place.buffer, layout: region };
            // A source that was made in the region has replaced what the base had there.
            reason = match there(&from, &to) {
                true => Reason::Taken,
                false => self.may_scatter(at, base, src, &place, &to.layout, &ty)?,
            };
            if reason == Reason::Taken {
                self.owner.set(r, Some(self.owner[base].unwrap_or(base)));
                if let Some(gone) = self.replaced.get(&base).cloned() {
                    self.replaced.insert(r, gone);
                }
                self.settle(r, place.clone(), ty.dtype)?;
                if !there(&from, &to) {
                    self.not_there(id, src, RemarkKind::SourceInRegion);
                    self.memory.placement.steps.push(Step::Move { value: src, from: from.into(), to: to.into() });
                }
                self.memory.placement.steps.push(Step::Free { node: id });
                self.remark(id, RemarkKind::ScatterInBase, Reason::Taken, bytes, Some(base));
                return Ok(true);
            }
        }
        self.remark(id, RemarkKind::ScatterInBase, reason, bytes, Some(base));
        // The base is carried over to memory of the result's own, then the region is replaced.
        let mut to = self.home(at, id, r)?;
        if self.region_of(id, base, &rule, &to.layout)?.is_none() {
            // It is said in strides that the base has in eager PyTorch.
            to = self.memory.fresh_as(dense(&ty), ty.dtype);
        }
        let Some(region) = self.region_of(id, base, &rule, &to.layout)? else {
            return Err(Error::unsupported("a scatter in terms of strides that its base does not have"));
        };
        self.settle(r, to.clone(), ty.dtype)?;
        self.not_there(id, src, RemarkKind::SourceInRegion);
        self.memory.placement.steps.push(Step::Move { value: base, from: place.into(), to: to.clone().into() });
        self.memory.placement.steps.push(Step::Move {
            value: src,
            from: from.into(),
            to: Place { buffer: to.buffer, layout: region }.into(),
        });
        self.memory.placement.steps.push(Step::Free { node: id });
        Ok(true)
    }

    /// Whether a scatter may be done in its base's memory.
    fn may_scatter(
        &mut self,
        at: usize,
        base: ValueId,
        src: ValueId,
        place: &Place,
        region: &Layout,
        ty: &Meta,
    ) -> Result<Reason> {
        if !self.memory.may_write(place.buffer) {
            // A copy of the base that was left out is made here after all, and the source is moved as well.
            self.in_the_way = vec![base];
            self.regret(self.bytes_of(base) + self.bytes_of(src));
            return Ok(Reason::CallerVisible);
        }
        if self_overlaps(&place.layout) != Some(false) || self_overlaps(region) != Some(false) {
            return Ok(Reason::NotDense);
        }
        if base == src || self.outlives(base, at) {
            return Ok(Reason::StillRead { by: self.reader(base, at) });
        }
        // A source in the same buffer is moved whole only if it is apart from the region.
        if let Some(from) = self.memory.place(src)
            && from.buffer == place.buffer
        {
            let size = ty.dtype.size();
            let how = overlap_bytes(&from.layout, size, region, size);
            if !matches!(how, Overlap::Disjoint | Overlap::Same) {
                return Ok(Reason::PartialOverlap);
            }
        }
        let needed = Needed { last_use: &self.last_use, at, reading: false };
        let except = self.replaced_with(base);
        let losers = self.memory.losers(place.buffer, region, ty.dtype, needed, &except);
        if !losers.is_empty() {
            self.in_the_way = losers.iter().map(|l| l.0).collect();
            self.regret(self.bytes_of(base));
        }
        Ok(match losers.first() {
            None => Reason::Taken,
            Some((_, Overlap::Unknown)) => Reason::UnknownOverlap,
            Some((v, _)) => Reason::StillRead { by: self.reader(*v, at) },
        })
    }
}
