//! Views, and kernels: where their results go.

use super::Placer;
use super::memory::Needed;
use restride_ir::{
    Arg, Buffer, BufferKind, Error, Layout, Meta, Movement, NodeId, Place, Reason, Remark, RemarkKind, Result,
    ReuseKind, Scalar, Step, Type, ValueId, ViewOutcome, layout_bytes,
};
use restride_tensor::{Overlap, overlap_bytes, self_overlaps};

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

    pub(super) fn remark(&mut self, id: NodeId, kind: RemarkKind, reason: Reason, bytes: i64) {
        self.remarks.push(Remark { node: id, kind, reason, bytes });
    }

    pub(super) fn bytes_of(&self, v: ValueId) -> i64 {
        self.types[v].as_ref().map_or(0, |t| t.layout.numel().saturating_mul(t.dtype.size() as i64))
    }

    /// Whether the value is needed after the node at `at`.
    pub(super) fn outlives(&self, v: ValueId, at: usize) -> bool {
        self.last_use[v] > at
    }

    /// A view: its results lie on its base. False if the node is no view here.
    pub(super) fn free_view(&mut self, id: NodeId) -> Result<bool> {
        let node = &self.graph.nodes[id];
        let def = node.op.def();
        // The copy form of a view has the same elements, and a kernel for where strides cannot express them.
        let (rule, position, copies) = match (def.view, &def.movement) {
            _ if def.metadata || def.math.is_some() => return Ok(false),
            (Some(rule), _) => (rule, def.base as usize, false),
            (None, Some(Movement::View(rule))) => (*rule, 0, true),
            _ => return Ok(false),
        };
        let Some(Arg::Value(base)) = node.args.get(position) else { return Ok(false) };
        let base = *base;
        let Some(place) = self.memory.place(base).cloned() else { return Ok(false) };
        let eager = self.ty(base)?.clone();
        let args = self.metas(id, |v| Ok(self.ty(v)?.clone()))?;
        let eager_views = match rule.of(&args)? {
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
            match rule.of(&placed) {
                Ok(ViewOutcome::Views(v)) => Some(v.to_vec()),
                _ => None,
            }
        };
        let beyond = |at: &Place, views: &[Meta]| {
            let inside = |m: &Meta| {
                let how = overlap_bytes(&m.layout, m.dtype.size(), &at.layout, eager.dtype.size());
                m.layout.sizes.contains(&0) || matches!(how, Overlap::Same | Overlap::Inside)
            };
            if !strided || views.iter().all(inside) {
                return Ok(());
            }
            Err(Error::unsupported(format!("{} reads memory that is not its operand's", node.op)))
        };
        let base_now = match views {
            Some(views) => {
                beyond(&place, &views)?;
                self.settle_views(id, place.buffer, &views)?;
                self.memory.placement.steps.push(Step::Free { node: id });
                let bytes = self.graph.nodes[id].results.iter().map(|r| self.bytes_of(*r)).sum();
                self.remark(id, RemarkKind::ViewOnBase, Reason::Taken, bytes);
                return Ok(true);
            }
            // Where the base lies the view cannot be expressed: it is looked at in a copy in the eager layout.
            None if copies && !strided => return Ok(false),
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
        beyond(&base_now, &views)?;
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
    /// The next node that reads a value after `at`; `None` for the caller.
    pub(super) fn reader(&self, v: ValueId, at: usize) -> Option<NodeId> {
        let uses = &self.uses[v];
        uses.get(uses.partition_point(|u| *u <= at)).map(|u| self.graph.order[*u])
    }

    /// A node with a kernel: each result where a later node wants it, on an operand, or in memory of its own.
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
            self.written_back(id, r, &place);
            self.memory.settle(r, place.clone(), ty.dtype);
            writes.push(Some(place));
        }
        self.run_step(id, writes);
        Ok(())
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
        let needed = Needed { last_use: &self.last_use, at, reading: false };
        let losers = self.memory.losers(place.buffer, &place.layout, ty.dtype, needed, &[]);
        if let Some((u, how)) = losers.first() {
            return Ok(if *how == Overlap::Unknown {
                Reason::UnknownOverlap
            } else {
                Reason::StillRead { by: self.reader(*u, at) }
            });
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
            let how = overlap_bytes(&p.layout, t.dtype.size(), &place.layout, ty.dtype.size());
            if how != Overlap::Disjoint {
                return Ok(Reason::PartialOverlap);
            }
        }
        Ok(Reason::Taken)
    }
}
