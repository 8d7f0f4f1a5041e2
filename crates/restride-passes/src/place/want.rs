//! Where a result is wanted: by the caller, by a scatter, by what is put together.

use super::Placer;
use super::memory::Needed;
use restride_ir::{
    Arg, Args, Buffer, BufferKind, Layout, Meta, Movement, NodeId, OpError, Piece, Place, Reason, RemarkKind, Result,
    ValueId, border_layout, layout_bytes,
};
use restride_tensor::self_overlaps;
use std::collections::BTreeMap;

/// The pieces of an assembled result.
type Pieces = fn(&Args<'_, Meta>, &Layout) -> std::result::Result<Vec<Piece>, OpError>;

impl Placer<'_> {
    /// Memory for a result that is not computed on an operand: where it is wanted, or its own.
    pub(super) fn home(&mut self, at: usize, r: ValueId, id: NodeId) -> Result<Place> {
        match self.wanted_at(at, r, id, &[])? {
            Some(place) => Ok(place),
            None => {
                let ty = self.ty(r)?.clone();
                Ok(self.memory.fresh(&ty))
            }
        }
    }

    /// The caller's memory for a value, if it may be written already now.
    pub(super) fn caller_memory(&mut self, at: usize, r: ValueId, id: NodeId) -> Result<Option<Place>> {
        if !self.options.boundary {
            return Ok(None);
        }
        let Some(wanted) = self.wanted.get(&r).cloned() else { return Ok(None) };
        for i in wanted.inputs {
            let input = self.graph.inputs[i];
            let Some(place) = self.input_place(i) else { continue };
            let ty = self.ty(r)?.clone();
            if self.ty(input)?.dtype != ty.dtype || self_overlaps(&place.layout) != Some(false) {
                continue;
            }
            // Operands of this very node are read while it is written.
            let needed = Needed { last_use: &self.last_use, at, reading: true };
            let losers = self.memory.losers(place.buffer, &place.layout, ty.dtype, needed, &[r]);
            let bytes = self.bytes_of(r);
            match losers.first() {
                None => {
                    self.remark(id, RemarkKind::WriteBack, Reason::Taken, bytes);
                    return Ok(Some(place));
                }
                Some((v, _)) => {
                    let by = self.reader(*v, at.saturating_sub(1));
                    self.remark(id, RemarkKind::WriteBack, Reason::StillRead { by }, bytes);
                }
            }
        }
        for i in wanted.outputs {
            if let Some(place) = self.output_place(i, r)? {
                self.remark(id, RemarkKind::OutputInCaller, Reason::Taken, self.bytes_of(r));
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    /// A result that took over the memory of a dying input is where the caller wants it after all.
    pub(super) fn written_back(&mut self, id: NodeId, r: ValueId, place: &Place) {
        let Some(wanted) = self.wanted.get(&r) else { return };
        if !wanted.inputs.iter().any(|i| self.input_places[*i].as_ref() == Some(place)) {
            return;
        }
        for remark in self.remarks.iter_mut().rev().take_while(|m| m.node == id) {
            if remark.kind == RemarkKind::WriteBack {
                remark.reason = Reason::Taken;
            }
        }
    }

    /// Where a later node or the caller wants a result, if it may be written there already now.
    pub(super) fn wanted_at(
        &mut self,
        at: usize,
        r: ValueId,
        id: NodeId,
        taken: &[Option<Place>],
    ) -> Result<Option<Place>> {
        if let Some(place) = self.caller_memory(at, r, id)? {
            let free = taken.iter().flatten().all(|t| t.buffer != place.buffer);
            if free {
                return Ok(Some(place));
            }
        }
        if !self.options.straight || self.wanted.contains_key(&r) {
            return Ok(None);
        }
        let &[at_use] = &self.uses[r][..] else { return Ok(None) };
        let user = self.graph.order[at_use];
        let ty = self.ty(r)?.clone();
        match self.graph.nodes[user].op.def().movement {
            Some(Movement::Scatter { base, src, region }) => {
                let node = &self.graph.nodes[user];
                let (Some(Arg::Value(b)), Some(Arg::Value(s))) =
                    (node.args.get(base as usize), node.args.get(src as usize))
                else {
                    return Ok(None);
                };
                let b = *b;
                if *s != r || b == r {
                    return Ok(None);
                }
                let Some(place) = self.memory.place(b).cloned() else { return Ok(None) };
                if self.ty(b)?.dtype != ty.dtype
                    || !self.memory.may_write(place.buffer)
                    || self.last_use[b] != at_use
                    || !self.options.scatter
                {
                    return Ok(None);
                }
                let Some(region) = self.region_of(user, b, &region, &place.layout)? else { return Ok(None) };
                if region.sizes != ty.layout.sizes
                    || self_overlaps(&region) != Some(false)
                    || self_overlaps(&place.layout) != Some(false)
                {
                    return Ok(None);
                }
                // Nobody may read the region's cells from now on, the base's other readers included.
                let next = self.uses[b].partition_point(|u| *u < at);
                if self.uses[b].get(next) != Some(&at_use) {
                    return Ok(None);
                }
                if taken.iter().flatten().any(|t| t.buffer == place.buffer) {
                    return Ok(None);
                }
                let needed = Needed { last_use: &self.last_use, at, reading: true };
                let losers = self.memory.losers(place.buffer, &region, ty.dtype, needed, &[b, r]);
                if let Some((v, _)) = losers.first() {
                    let by = self.reader(*v, at.saturating_sub(1));
                    self.remark(id, RemarkKind::SourceInRegion, Reason::StillRead { by }, self.bytes_of(r));
                    return Ok(None);
                }
                self.remark(id, RemarkKind::SourceInRegion, Reason::Taken, self.bytes_of(r));
                Ok(Some(Place { buffer: place.buffer, layout: region }))
            }
            Some(Movement::Assemble(pieces)) => {
                let Some(region) = self.part_of(user, r, pieces)? else { return Ok(None) };
                let result = self.graph.nodes[user].results[0];
                let buffer = self.memory.place(result).expect("the whole was placed with its parts").buffer;
                if region.sizes != ty.layout.sizes || taken.iter().flatten().any(|t| t.buffer == buffer) {
                    return Ok(None);
                }
                Ok(Some(Place { buffer, layout: region }))
            }
            _ => Ok(None),
        }
    }

    /// The output buffer of a value that is one.
    fn own_output(&mut self, v: ValueId) -> Result<Option<Place>> {
        if !self.options.boundary {
            return Ok(None);
        }
        match self.wanted.get(&v).and_then(|w| w.outputs.first().copied()) {
            Some(i) => self.output_place(i, v),
            None => Ok(None),
        }
    }

    /// The part of an assembled result that is a value, which is one of its operands once. The whole is placed with the
    /// first that asks: only memory that nobody else has is sure to stay free until then.
    fn part_of(&mut self, user: NodeId, r: ValueId, pieces: Pieces) -> Result<Option<Layout>> {
        if let Some(parts) = self.parts.get(&user) {
            return Ok(parts.get(&r).cloned().flatten());
        }
        let mut parts: BTreeMap<ValueId, Option<Layout>> = BTreeMap::new();
        let result = self.graph.nodes[user].results[0];
        let want = self.ty(result)?.clone();
        let operands: Vec<ValueId> = self.graph.nodes[user].operands().collect();
        if operands.iter().all(|v| self.types[*v].as_ref().is_some_and(|t| t.dtype == want.dtype)) {
            let args = self.metas(user, |v| Ok(self.ty(v)?.clone()))?;
            let place = match self.memory.place(result).cloned() {
                Some(place) => place,
                None => {
                    let place = match self.own_output(result)? {
                        Some(place) => place,
                        None => self.memory.fresh(&want),
                    };
                    self.memory.settle(result, place.clone(), want.dtype);
                    place
                }
            };
            for piece in pieces(&Args(&args), &place.layout)? {
                // What is there twice cannot be in both places.
                let v = operands[piece.operand];
                parts.entry(v).and_modify(|p| *p = None).or_insert(Some(piece.region));
            }
        }
        let part = parts.get(&r).cloned().flatten();
        self.parts.insert(user, parts);
        Ok(part)
    }

    /// The place of an input's memory, as it lies at the start.
    pub(super) fn input_place(&self, i: usize) -> Option<Place> {
        self.input_places.get(i).cloned().flatten()
    }

    /// The place in an output's memory, made at the first call; `None` if a value was given it before.
    pub(super) fn output_place(&mut self, i: usize, v: ValueId) -> Result<Option<Place>> {
        if self.output_places.contains_key(&i) {
            return Ok(None);
        }
        let ty = self.ty(v)?.clone();
        let layout = border_layout(&ty);
        let bytes = layout_bytes(&layout, ty.dtype.size());
        let buffer = self.memory.add(Buffer { kind: BufferKind::Output(i), bytes });
        let place = Place { buffer, layout };
        self.output_places.insert(i, place.clone());
        Ok(Some(place))
    }
}
