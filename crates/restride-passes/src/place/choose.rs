//! Where one node's results go.

use super::Placer;
use restride_ir::{
    Arg, Args, Buffer, BufferKind, Error, Layout, Meta, Movement, NodeId, Place, Reason, Remark, RemarkKind, Result,
    ReuseKind, Scalar, Step, TensorType, Type, ValueId, ViewOutcome, border_layout, layout_bytes,
};
use restride_tensor::{Overlap, overlap, self_overlaps};

impl Placer<'_> {
    /// Arguments for a rule, with operands' types as given by `meta`.
    fn metas(&self, id: NodeId, meta: impl Fn(ValueId) -> Result<Meta>) -> Result<Vec<Arg<Meta, Scalar>>> {
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

    fn integers(args: &[Arg<Meta, Scalar>]) -> Vec<Arg<Meta, i64>> {
        let map = |a: &Arg<Meta, Scalar>| {
            let mapped: std::result::Result<_, std::convert::Infallible> =
                a.try_map(|m| Ok(m.clone()), |s| Ok(s.as_view_number()));
            match mapped {
                Ok(a) => a,
            }
        };
        args.iter().map(map).collect()
    }

    pub(super) fn remark(&mut self, id: NodeId, kind: RemarkKind, reason: Reason, bytes: i64) {
        self.remarks.push(Remark { node: id, kind, reason, bytes });
    }

    pub(super) fn bytes_of(&self, v: ValueId) -> i64 {
        self.types[v].as_ref().map_or(0, |t| t.layout.numel().saturating_mul(t.dtype.size() as i64))
    }

    /// Whether the value is needed after the node at `at`.
    fn outlives(&self, v: ValueId, at: usize) -> bool {
        self.last_use[v] > at
    }

    /// A view: its results lie on its base. False if the node is no view here.
    pub(super) fn free_view(&mut self, _at: usize, id: NodeId) -> Result<bool> {
        let node = &self.graph.nodes[id];
        let Some(rule) = node.op.def().view.filter(|_| !node.op.def().metadata && node.op.def().math.is_none()) else {
            return Ok(false);
        };
        let Some(Arg::Value(base)) = node.args.get(node.op.def().base as usize) else { return Ok(false) };
        let base = *base;
        let Some(place) = self.memory.place(base).cloned() else { return Ok(false) };
        let eager = self.ty(base)?.clone();
        let args = self.metas(id, |v| Ok(self.ty(v)?.clone()))?;
        let eager_views = match (rule.known)(&Args(&Self::integers(&args)))? {
            ViewOutcome::Views(v) => v,
            // It copies by its meaning: a kernel, unless nothing changes (see `moved`).
            _ => return Ok(false),
        };
        let strided = node.op.def().strided;
        let fits = if strided {
            place.layout.strides == eager.layout.strides
                || (place.layout.sizes.iter().zip(place.layout.strides.iter().zip(&eager.layout.strides)))
                    .all(|(n, (a, b))| *n <= 1 || a == b)
        } else {
            true
        };
        let views: Option<Vec<Meta>> = if !fits || !self.options.views {
            None
        } else if strided {
            let shift = |m: &Meta| {
                let bytes = (place.layout.offset - eager.layout.offset) * eager.dtype.size() as i64;
                let size = m.dtype.size() as i64;
                (bytes % size == 0).then(|| {
                    let mut m = m.clone();
                    m.layout.offset += bytes / size;
                    m
                })
            };
            eager_views.iter().map(shift).collect()
        } else {
            let placed = self.metas(id, |v| if v == base { self.placed_meta(v) } else { Ok(self.ty(v)?.clone()) })?;
            match (rule.known)(&Args(&Self::integers(&placed))) {
                Ok(ViewOutcome::Views(v)) => Some(v.to_vec()),
                _ => None,
            }
        };
        let base_now = match views {
            Some(views) => {
                self.settle_views(id, place.buffer, &views)?;
                self.memory.placement.steps.push(Step::Free { node: id });
                let bytes = self.graph.nodes[id].results.iter().map(|r| self.bytes_of(*r)).sum();
                self.remark(id, RemarkKind::ViewOnBase, Reason::Taken, bytes);
                return Ok(true);
            }
            // Where the base lies the view cannot be expressed: it is looked at in a copy in the eager layout.
            None => self.eager_copy(base, &eager)?,
        };
        let reason = if self.options.views { Reason::KernelNeedsLayout } else { Reason::SwitchedOff };
        self.remark(id, RemarkKind::ViewOnBase, reason, self.bytes_of(base));
        let shift = base_now.layout.offset - eager.layout.offset;
        let views: Vec<Meta> = eager_views
            .iter()
            .map(|m| {
                let mut m = m.clone();
                m.layout.offset += shift * eager.dtype.size() as i64 / m.dtype.size() as i64;
                m
            })
            .collect();
        self.settle_views(id, base_now.buffer, &views)?;
        self.memory.placement.steps.push(Step::Free { node: id });
        Ok(true)
    }

    /// Moves a value to memory in its eager layout and leaves it there: what reads it later reads it there too.
    fn eager_copy(&mut self, v: ValueId, eager: &Meta) -> Result<Place> {
        let from = self.memory.place(v).cloned().ok_or_else(|| Error::invalid("a value without a place"))?;
        let layout = Layout { offset: 0, ..eager.layout.clone() };
        let bytes = layout_bytes(&layout, eager.dtype.size());
        let buffer = self.memory.add(Buffer { kind: BufferKind::Arena, bytes });
        let to = Place { buffer, layout };
        self.memory.placement.steps.push(Step::Move { value: v, from, to: to.clone() });
        self.memory.settle(v, to.clone(), eager.dtype);
        Ok(to)
    }

    fn settle_views(&mut self, id: NodeId, buffer: restride_ir::BufferId, views: &[Meta]) -> Result<()> {
        let results = self.graph.nodes[id].results.clone();
        if results.len() != views.len() {
            return Err(Error::invalid("a view rule gives another number of results"));
        }
        for (r, m) in results.iter().zip(views) {
            self.memory.settle(*r, Place { buffer, layout: m.layout.clone() }, m.dtype);
        }
        Ok(())
    }

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
            Some(Movement::Assemble(pieces)) => {
                let args = self.metas(id, |v| Ok(self.ty(v)?.clone()))?;
                let r = self.graph.nodes[id].results[0];
                let ty = self.ty(r)?.clone();
                let operands: Vec<ValueId> = self.graph.nodes[id].operands().collect();
                if operands.iter().any(|v| self.types[*v].as_ref().is_none_or(|t| t.dtype != ty.dtype)) {
                    return Ok(false);
                }
                let place = match self.memory.place(r).cloned() {
                    Some(place) => place,
                    None => {
                        let place = self.home(at, r, id)?;
                        self.memory.settle(r, place.clone(), ty.dtype);
                        place
                    }
                };
                for piece in pieces(&Args(&args), &place.layout)? {
                    let v = operands[piece.operand];
                    let from =
                        self.memory.place(v).cloned().ok_or_else(|| Error::invalid("a value without a place"))?;
                    let to = Place { buffer: place.buffer, layout: piece.region };
                    if from.buffer == to.buffer && from.layout.same_cells(&to.layout) {
                        self.remark(id, RemarkKind::AssembleInPlace, Reason::Taken, self.bytes_of(v));
                        continue;
                    }
                    self.memory.placement.steps.push(Step::Move { value: v, from, to });
                }
                self.memory.placement.steps.push(Step::Free { node: id });
                Ok(true)
            }
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
        if let Some(layout) = layout {
            self.memory.settle(r, Place { buffer: place.buffer, layout }, want.dtype);
            self.memory.placement.steps.push(Step::Free { node: id });
            self.remark(id, RemarkKind::ViewOnBase, Reason::Taken, self.bytes_of(r));
            return Ok(true);
        }
        if have.layout.sizes != want.layout.sizes {
            // Another shape than strides can express: the kernel takes elements in logical order.
            return Ok(false);
        }
        let to = self.home(at, r, id)?;
        self.memory.settle(r, to.clone(), want.dtype);
        self.memory.placement.steps.push(Step::Move { value: from, from: place, to });
        self.memory.placement.steps.push(Step::Free { node: id });
        Ok(true)
    }

    /// The region of a scatter on a base that lies as `place` says.
    fn region_of(
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
            Ok(match (rule.known)(&Args(&Self::integers(&args)))? {
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
        let mut reason = Reason::SwitchedOff;
        if self.options.scatter
            && let Some(region) = self.region_of(id, base, &rule, &place.layout)?
        {
            reason = self.may_scatter(at, base, src, &place, &region, &ty)?;
            if reason == Reason::Taken {
                self.memory.settle(r, place.clone(), ty.dtype);
                let to = Place { buffer: place.buffer, layout: region };
                if !(from.buffer == to.buffer && from.layout.same_cells(&to.layout)) {
                    self.memory.placement.steps.push(Step::Move { value: src, from, to });
                }
                self.memory.placement.steps.push(Step::Free { node: id });
                self.remark(id, RemarkKind::ScatterInBase, Reason::Taken, bytes);
                return Ok(true);
            }
        }
        self.remark(id, RemarkKind::ScatterInBase, reason, bytes);
        // The base is carried over to memory of the result's own, then the region is replaced.
        let to = self.home(at, r, id)?;
        let Some(region) = self.region_of(id, base, &rule, &to.layout)? else {
            return Err(Error::unsupported("a scatter in terms of strides that its base does not have"));
        };
        self.memory.settle(r, to.clone(), ty.dtype);
        self.memory.placement.steps.push(Step::Move { value: base, from: place, to: to.clone() });
        self.memory.placement.steps.push(Step::Move {
            value: src,
            from,
            to: Place { buffer: to.buffer, layout: region },
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
            let how = restride_tensor::overlap_bytes(&from.layout, size, region, size);
            if !matches!(how, Overlap::Disjoint | Overlap::Same) {
                return Ok(Reason::PartialOverlap);
            }
        }
        let last_use = &self.last_use;
        let losers = self.memory.losers(place.buffer, region, ty.dtype, |v| last_use[v] > at, &[base]);
        Ok(match losers.first() {
            None => Reason::Taken,
            Some((_, Overlap::Unknown)) => Reason::UnknownOverlap,
            Some((v, _)) => Reason::StillRead { by: self.reader(*v, at) },
        })
    }

    /// The next node that reads a value after `at`; `None` for the caller.
    fn reader(&self, v: ValueId, at: usize) -> Option<NodeId> {
        self.uses[v].iter().find(|u| **u > at).map(|u| self.graph.order[*u])
    }

    /// A node with a kernel: each result where a later node wants it, on an operand, or in memory of its own.
    pub(super) fn kernel(&mut self, at: usize, id: NodeId) -> Result<()> {
        let node = &self.graph.nodes[id];
        if matches!(node.op.def().kernel, restride_ir::Kernel::None) {
            return Err(Error::unsupported(format!("{} has no kernel", node.op))
                .help("restride ops lists the operators that can be run"));
        }
        // Eager strides matter to an operator that reads them: its operands are looked at where eager has them.
        if node.op.def().strided {
            for v in node.operands().collect::<Vec<_>>() {
                let eager = self.ty(v)?.clone();
                let strides = self.memory.place(v).map(|p| p.layout.strides.clone());
                if strides.is_some_and(|s| s != eager.layout.strides) {
                    self.eager_copy(v, &eager)?;
                }
            }
        }
        let results = self.graph.nodes[id].results.clone();
        let mut writes: Vec<Option<Place>> = Vec::new();
        for (k, &r) in results.iter().enumerate() {
            if !matches!(self.graph.values[r].ty, Type::Tensor(_)) {
                writes.push(None);
                continue;
            }
            let ty = self.ty(r)?.clone();
            let strided = self.graph.nodes[id].op.def().strided;
            let place = match self.memory.place(r).cloned() {
                Some(place) => place,
                None => {
                    let hinted = if strided { None } else { self.wanted_at(at, r, id, &writes)? };
                    match hinted {
                        Some(place) => place,
                        None => match self.on_operand(at, id, k, r, &writes)? {
                            Some(place) => place,
                            None => self.memory.fresh(&ty),
                        },
                    }
                }
            };
            self.memory.settle(r, place.clone(), ty.dtype);
            writes.push(Some(place));
        }
        self.run_step(at, id, writes);
        Ok(())
    }

    /// Memory for a result that is not computed on an operand: where it is wanted, or its own.
    fn home(&mut self, at: usize, r: ValueId, id: NodeId) -> Result<Place> {
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
            let last_use = &self.last_use;
            let losers = self.memory.losers(place.buffer, &place.layout, ty.dtype, |v| last_use[v] >= at, &[r]);
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

    /// Where a later node or the caller wants a result, if it may be written there already now.
    fn wanted_at(&mut self, at: usize, r: ValueId, id: NodeId, taken: &[Option<Place>]) -> Result<Option<Place>> {
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
                if self.uses[b].iter().any(|u| *u >= at && *u != at_use) {
                    return Ok(None);
                }
                if taken.iter().flatten().any(|t| t.buffer == place.buffer) {
                    return Ok(None);
                }
                let last_use = &self.last_use;
                let losers = self.memory.losers(place.buffer, &region, ty.dtype, |v| last_use[v] >= at, &[b, r]);
                if let Some((v, _)) = losers.first() {
                    let by = self.reader(*v, at.saturating_sub(1));
                    self.remark(id, RemarkKind::SourceInRegion, Reason::StillRead { by }, self.bytes_of(r));
                    return Ok(None);
                }
                self.remark(id, RemarkKind::SourceInRegion, Reason::Taken, self.bytes_of(r));
                Ok(Some(Place { buffer: place.buffer, layout: region }))
            }
            Some(Movement::Assemble(pieces)) => {
                let result = self.graph.nodes[user].results[0];
                let want = self.ty(result)?.clone();
                let operands: Vec<ValueId> = self.graph.nodes[user].operands().collect();
                if operands.iter().any(|v| self.types[*v].as_ref().is_none_or(|t| t.dtype != want.dtype))
                    || operands.iter().filter(|v| **v == r).count() != 1
                {
                    return Ok(None);
                }
                let args = self.metas(user, |v| Ok(self.ty(v)?.clone()))?;
                let place = match self.memory.place(result).cloned() {
                    Some(place) => place,
                    None => {
                        // The whole is made room for now. Only memory that nobody else has is sure to stay free.
                        let place = match self.own_output(result)? {
                            Some(place) => place,
                            None => self.memory.fresh(&want),
                        };
                        self.memory.settle(result, place.clone(), want.dtype);
                        place
                    }
                };
                if taken.iter().flatten().any(|t| t.buffer == place.buffer) {
                    return Ok(None);
                }
                let position = operands.iter().position(|v| *v == r);
                let piece = pieces(&Args(&args), &place.layout)?.into_iter().find(|p| Some(p.operand) == position);
                Ok(piece
                    .filter(|p| p.region.sizes == ty.layout.sizes)
                    .map(|p| Place { buffer: place.buffer, layout: p.region }))
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

    /// The place of an operand that dies here and that the result may take over.
    fn on_operand(
        &mut self,
        at: usize,
        id: NodeId,
        k: usize,
        r: ValueId,
        taken: &[Option<Place>],
    ) -> Result<Option<Place>> {
        let op = self.graph.nodes[id].op;
        let ty = self.ty(r)?.clone();
        let bytes = self.bytes_of(r);
        let mut declined = None;
        for licence in op.def().reuse.iter().filter(|l| l.result as usize == k) {
            if !self.options.reuse {
                break;
            }
            let Some(Arg::Value(v)) = self.graph.nodes[id].args.get(licence.arg as usize) else { continue };
            let v = *v;
            let (have, Some(place)) = (self.ty(v)?.clone(), self.memory.place(v).cloned()) else { continue };
            let reason = if have.dtype.size() != ty.dtype.size() {
                Reason::DTypeDiffers
            } else if have.layout.sizes != ty.layout.sizes {
                Reason::SizesDiffer
            } else if !self.memory.may_write(place.buffer) {
                Reason::CallerVisible
            } else if self_overlaps(&place.layout) != Some(false) {
                Reason::NotDense
            } else if self.outlives(v, at) {
                Reason::StillRead { by: self.reader(v, at) }
            } else if taken.iter().flatten().any(|t| t.buffer == place.buffer) {
                Reason::PartialOverlap
            } else {
                self.may_lie_on(at, id, v, &place, &ty, licence.kind)?
            };
            if reason == Reason::Taken {
                self.remark(id, RemarkKind::ReuseOperand, Reason::Taken, bytes);
                return Ok(Some(place));
            }
            declined.get_or_insert(reason);
        }
        if let Some(reason) = declined {
            self.remark(id, RemarkKind::ReuseOperand, reason, bytes);
        }
        Ok(None)
    }

    fn may_lie_on(
        &mut self,
        at: usize,
        id: NodeId,
        v: ValueId,
        place: &Place,
        ty: &Meta,
        kind: ReuseKind,
    ) -> Result<Reason> {
        // Whoever is read after this node must not lose a cell; nor must the node's other operands, unless its
        // kernel copes.
        let last_use = &self.last_use;
        let losers = self.memory.losers(place.buffer, &place.layout, ty.dtype, |u| last_use[u] > at, &[]);
        if let Some((u, how)) = losers.first() {
            return Ok(if *how == Overlap::Unknown {
                Reason::UnknownOverlap
            } else {
                Reason::StillRead { by: self.reader(*u, at) }
            });
        }
        if kind == ReuseKind::ReadsFirst {
            return Ok(Reason::Taken);
        }
        for u in self.graph.nodes[id].operands() {
            let (Some(p), Some(t)) = (self.memory.place(u), &self.types[u]) else { continue };
            if u == v && self.graph.nodes[id].operands().filter(|x| *x == v).count() == 1 || p.buffer != place.buffer {
                continue;
            }
            let same_index_ok = matches!(kind, ReuseKind::SameIndex | ReuseKind::RowWise { .. })
                && t.dtype.size() == ty.dtype.size()
                && p.layout.same_cells(&place.layout);
            if same_index_ok {
                continue;
            }
            let how = if t.dtype.size() == ty.dtype.size() {
                overlap(&p.layout, &place.layout)
            } else {
                restride_tensor::overlap_bytes(&p.layout, t.dtype.size(), &place.layout, ty.dtype.size())
            };
            if how != Overlap::Disjoint {
                return Ok(Reason::PartialOverlap);
            }
        }
        Ok(Reason::Taken)
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
