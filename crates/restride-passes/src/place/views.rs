//! Views: their results lie on their bases.

use super::Placer;
use restride_ir::{
    Arg, Buffer, BufferId, BufferKind, DType, Error, Layout, Meta, Movement, Node, NodeId, Place, Reason, RemarkKind,
    Result, Step, ValueId, ViewOutcome, ViewRule, layout_bytes,
};
use restride_tensor::{Overlap, overlap_bytes, self_overlaps};

impl Placer<'_> {
    /// Puts a value at a place, and all that are views of it there with it: they live from then on, and the value itself
    /// only as long as a node other than these reads it. So a write is held against the cells that are still read.
    pub(super) fn settle(&mut self, v: ValueId, place: Place, dtype: DType) -> Result<()> {
        let mut work = vec![(v, place, dtype)];
        while let Some((v, place, dtype)) = work.pop() {
            let (buffer, owner) = (place.buffer, Some(self.owner[v].unwrap_or(v)));
            self.memory.settle(v, place, dtype);
            if !self.options.views || self.uses[v].is_empty() {
                continue;
            }
            let mut direct = Vec::new();
            for at in std::mem::take(self.uses.entry(v)) {
                let id = self.graph.order[at];
                let results = &self.graph.nodes[id].results;
                match self.views_there(id, v)? {
                    Some(views) if views.len() == results.len() && self.early.insert(id) => {
                        for (&r, view) in results.iter().zip(views) {
                            self.owner.set(r, owner);
                            work.push((r, Place { buffer, layout: view.layout }, view.dtype));
                        }
                    }
                    _ => direct.push(at),
                }
            }
            if !self.wanted.contains_key(&v) {
                self.last_use.set(v, direct.last().copied().unwrap_or(0));
            }
            self.uses.set(v, direct);
        }
        Ok(())
    }

    /// What a view of a value is where the value lies, if strides can say it.
    fn views_there(&self, id: NodeId, base: ValueId) -> Result<Option<Vec<Meta>>> {
        let node = &self.graph.nodes[id];
        let Some((rule, position, _)) = view_rule(node) else { return Ok(None) };
        if node.op.def().strided || !matches!(node.args.get(position), Some(Arg::Value(v)) if *v == base) {
            return Ok(None);
        }
        let args = self.metas(id, |v| Ok(self.ty(v)?.clone()))?;
        if !matches!(rule.of(&args)?, ViewOutcome::Views(_)) {
            return Ok(None);
        }
        let placed = self.metas(id, |v| if v == base { self.placed_meta(v) } else { Ok(self.ty(v)?.clone()) })?;
        Ok(match rule.of(&placed) {
            Ok(ViewOutcome::Views(views)) => Some(views.to_vec()),
            _ => None,
        })
    }

    /// What one of a view's results shows of a base that lies so, if strides can say it.
    pub(super) fn shown(&self, id: NodeId, base: ValueId, k: usize, lies: &Layout) -> Result<Option<Layout>> {
        let Some((rule, _, _)) = view_rule(&self.graph.nodes[id]) else { return Ok(None) };
        let own = Meta { dtype: self.ty(base)?.dtype, layout: lies.clone() };
        let args = self.metas(id, |u| if u == base { Ok(own.clone()) } else { Ok(self.ty(u)?.clone()) })?;
        Ok(match rule.of(&args) {
            Ok(ViewOutcome::Views(views)) => views.get(k).map(|w| w.layout.clone()),
            _ => None,
        })
    }

    /// A view: its results lie on its base. False if the node is no view here.
    pub(super) fn free_view(&mut self, id: NodeId) -> Result<bool> {
        let node = &self.graph.nodes[id];
        let Some((rule, position, copies)) = view_rule(node) else { return Ok(false) };
        let Some(Arg::Value(base)) = node.args.get(position) else { return Ok(false) };
        let base = *base;
        if self.early.contains(&id) {
            self.memory.placement.steps.push(Step::Free { node: id });
            let bytes = node.results.iter().map(|r| self.bytes_of(*r)).sum();
            self.remark(id, RemarkKind::ViewOnBase, Reason::Taken, bytes, Some(base));
            return Ok(true);
        }
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
        // A value with several elements in one cell cannot be copied as it is.
        let copied = !self.options.views && self_overlaps(&eager.layout) == Some(false);
        let views: Option<Vec<Meta>> = if !fits || copied {
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
                self.settle_views(id, base, place.buffer, &views)?;
                self.memory.placement.steps.push(Step::Free { node: id });
                let bytes = self.graph.nodes[id].results.iter().map(|r| self.bytes_of(*r)).sum();
                self.remark(id, RemarkKind::ViewOnBase, Reason::Taken, bytes, Some(base));
                return Ok(true);
            }
            // Where the base lies the view cannot be expressed: it is looked at in a copy in the eager layout.
            None if copies && !strided => return Ok(false),
            None => self.eager_copy(id, base, &eager)?,
        };
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
        self.settle_views(id, base, base_now.buffer, &views)?;
        self.memory.placement.steps.push(Step::Free { node: id });
        Ok(true)
    }

    /// Moves a value to memory in its eager layout and leaves it there: what reads it later reads it there too.
    pub(super) fn eager_copy(&mut self, id: NodeId, v: ValueId, eager: &Meta) -> Result<Place> {
        let reason = if self.options.views { Reason::KernelNeedsLayout } else { Reason::SwitchedOff };
        self.remark(id, RemarkKind::LayoutCopy, reason, self.bytes_of(v), Some(v));
        let from = self.memory.place(v).cloned().ok_or_else(|| Error::invalid("a value without a place"))?;
        let layout = Layout { offset: 0, ..eager.layout.clone() };
        let bytes = layout_bytes(&layout, eager.dtype.size());
        let buffer = self.memory.add(Buffer { kind: BufferKind::Arena, bytes });
        let to = Place { buffer, layout };
        self.memory.placement.steps.push(Step::Move { value: v, from: from.into(), to: to.clone().into() });
        self.memory.settle(v, to.clone(), eager.dtype);
        Ok(to)
    }

    fn settle_views(&mut self, id: NodeId, base: ValueId, buffer: BufferId, views: &[Meta]) -> Result<()> {
        let results = self.graph.nodes[id].results.clone();
        let owner = Some(self.owner[base].unwrap_or(base));
        if results.len() != views.len() {
            return Err(Error::invalid("a view rule gives another number of results"));
        }
        for (r, m) in results.iter().zip(views) {
            self.owner.set(*r, owner);
            self.settle(*r, Place { buffer, layout: m.layout.clone() }, m.dtype)?;
        }
        Ok(())
    }
}

/// The view rule of a node, the position of its base, and whether it copies where strides cannot say it: the copy form of
/// a view has the same elements, and a kernel for that.
pub(crate) fn view_rule(node: &Node) -> Option<(ViewRule, usize, bool)> {
    let def = node.op.def();
    match (def.view, &def.movement) {
        _ if def.metadata || def.math.is_some() => None,
        (Some(rule), _) => Some((rule, def.base as usize, false)),
        (None, Some(Movement::View(rule))) => Some((*rule, 0, true)),
        _ => None,
    }
}
