//! Views: their results share the places of their bases.

use super::Placer;
use super::facts::ReadPositions;
use restride_ir::{
    Arg, DType, Error, Layout, Meta, Movement, Node, NodeId, Place, Reason, RemarkKind, Result, Scalar, ValueId,
    ViewOutcome, ViewRule,
};
use restride_tensor::{Overlap, overlap_bytes, self_overlaps};

impl Placer<'_> {
    /// Puts a value at a place, and with it all of its views: they live from then on, and the value itself only as long as
    /// another node reads it. So a write counts only cells that are still read.
    pub(super) fn settle(&mut self, v: ValueId, place: Place, dtype: DType) -> Result<()> {
        let mut work = vec![(v, place, dtype)];
        while let Some((v, place, dtype)) = work.pop() {
            let (buffer, owner) = (place.buffer, self.places.owner(v));
            self.places.set(v, place, dtype);
            if !self.options.views || self.places.uses[v].is_empty() {
                continue;
            }
            let mut direct = ReadPositions::new();
            for at in std::mem::take(self.places.uses.entry(v)) {
                let id = self.facts.graph.order[at];
                let results = &self.facts.graph.nodes[id].results;
                match self.views_at_place(id, v)? {
                    Some(views) if views.len() == results.len() && !self.places.early_views[id] => {
                        self.places.early_views.set(id, true);
                        for (&r, view) in results.iter().zip(views) {
                            self.places.set_owner(r, owner);
                            work.push((r, Place { buffer, layout: view.layout }, view.dtype));
                        }
                    }
                    _ => direct.push(at),
                }
            }
            if self.facts.handed(v).is_none() {
                self.places.last_use.set(v, direct.last().copied().unwrap_or(0));
            }
            self.places.uses.set(v, direct);
        }
        Ok(())
    }

    /// The views that a node makes of a placed base; `None` if it is no view, or no strides on the base's place express it.
    fn views_at_place(&self, id: NodeId, base: ValueId) -> Result<Option<Vec<Meta>>> {
        let node = &self.facts.graph.nodes[id];
        let Some((rule, position, _)) = view_rule(node) else { return Ok(None) };
        // Until the wait, the whole result of an exchange is the engine's.
        if node.op.def().awaits
            || node.op.def().strided
            || !matches!(node.args.get(position), Some(Arg::Value(v)) if *v == base)
        {
            return Ok(None);
        }
        let ViewOutcome::Views(eager_views) = rule.of(&self.eager_args(id)?)? else { return Ok(None) };
        let placed = self.placed_meta(base)?;
        if placed == *self.facts.ty(base)? {
            return Ok(Some(eager_views.into_vec()));
        }
        Ok(views_of(rule, &self.args_with(id, base, &placed.layout)?))
    }

    /// The layout of a view's `k`-th result where the base has the layout `of`, if strides can express it.
    pub(super) fn view_layout(&self, id: NodeId, base: ValueId, k: usize, of: &Layout) -> Result<Option<Layout>> {
        let Some((rule, _, _)) = view_rule(&self.facts.graph.nodes[id]) else { return Ok(None) };
        let views = views_of(rule, &self.args_with(id, base, of)?);
        Ok(views.and_then(|views| views.get(k).map(|w| w.layout.clone())))
    }

    /// Places the results of a view on its base; false if the node is no view here.
    pub(super) fn place_view(&mut self, id: NodeId) -> Result<bool> {
        let node = &self.facts.graph.nodes[id];
        let Some((rule, position, copies)) = view_rule(node) else { return Ok(false) };
        let Some(&Arg::Value(base)) = node.args.get(position) else { return Ok(false) };
        if self.places.early_views[id] {
            self.view_taken(id, base);
            return Ok(true);
        }
        let Some(place) = self.places.find(base).cloned() else { return Ok(false) };
        let eager = self.facts.ty(base)?;
        // A view rule that copies means a kernel, unless nothing changes (see `place_movement`).
        let ViewOutcome::Views(eager_views) = rule.of(&self.eager_args(id)?)? else { return Ok(false) };
        let strided = node.op.def().strided;
        let fits = !strided || {
            let strides = place.layout.strides.iter().zip(&eager.layout.strides);
            place.layout.sizes.iter().zip(strides).all(|(n, (a, b))| *n <= 1 || a == b)
        };
        // A value with several elements in one cell cannot be copied as it is.
        let copied = !self.options.views && !node.op.def().awaits && self_overlaps(&eager.layout) == Some(false);
        let views = match strided {
            _ if !fits || copied => None,
            true => shifted(&eager_views, eager, &place),
            false if place.layout == eager.layout => Some(eager_views.to_vec()),
            false => views_of(rule, &self.args_with(id, base, &place.layout)?),
        };
        if let Some(views) = views {
            self.settle_views(id, base, &place, views)?;
            match node.op.def().awaits {
                true => self.push_wait(id),
                false => self.view_taken(id, base),
            }
            return Ok(true);
        }
        if copies && !strided {
            return Ok(false);
        }
        // No strides on the base's place express the view: it is a view of a copy in the eager layout.
        let place = self.eager_copy(id, base, eager)?;
        let views = shifted(&eager_views, eager, &place)
            .ok_or_else(|| Error::invalid("a view that starts inside an element of its base"))?;
        self.settle_views(id, base, &place, views)?;
        self.places.push_free(id);
        Ok(true)
    }

    /// Makes the step of a view that was placed with its base now, if its node is yet to come: a step may read it then.
    pub(super) fn show_early(&mut self, at: usize, v: ValueId) {
        let facts = self.facts;
        let Some(id) = facts.makers[v].filter(|maker| *maker > at).map(|maker| facts.graph.order[maker]) else {
            return;
        };
        let node = &facts.graph.nodes[id];
        if let Some((_, position, _)) = view_rule(node)
            && let Some(&Arg::Value(base)) = node.args.get(position)
        {
            self.show_early(at, base);
        }
        if self.places.shown_early.insert(id) {
            self.places.push_free(id);
        }
    }

    fn view_taken(&mut self, id: NodeId, base: ValueId) {
        if !self.places.shown_early.contains(&id) {
            self.places.push_free(id);
        }
        self.remark(id, RemarkKind::ViewOnBase, Reason::Taken, self.facts.result_bytes(id), Some(base));
    }

    /// Moves a value to memory in its eager layout in which later readers find it.
    pub(super) fn eager_copy(&mut self, id: NodeId, v: ValueId, eager: &Meta) -> Result<Place> {
        let reason = if self.options.views { Reason::KernelNeedsLayout } else { Reason::SwitchedOff };
        self.remark(id, RemarkKind::LayoutCopy, reason, self.facts.bytes_of(v), Some(v));
        let from = self.places.get(v)?;
        let to = self.places.fresh(Layout { offset: 0, ..eager.layout.clone() }, eager.dtype);
        self.places.push_move(v, from, to.clone());
        // An exchange reads the value where it is.
        if !self.places.is_held(v) {
            self.places.set(v, to.clone(), eager.dtype);
        }
        Ok(to)
    }

    /// Puts the results of a view node at these layouts in the buffer of the base.
    fn settle_views(&mut self, id: NodeId, base: ValueId, place: &Place, views: Vec<Meta>) -> Result<()> {
        let node = &self.facts.graph.nodes[id];
        let size = self.facts.ty(base)?.dtype.size();
        let inside = |m: &Meta| {
            let how = overlap_bytes(&m.layout, m.dtype.size(), &place.layout, size);
            m.layout.sizes.contains(&0) || matches!(how, Overlap::Same | Overlap::Inside)
        };
        if node.op.def().strided && !views.iter().all(inside) {
            return Err(Error::unsupported(format!("{} reads memory outside of its operand", node.op)));
        }
        if node.results.len() != views.len() {
            return Err(Error::invalid("a view rule gives another number of results"));
        }
        let owner = self.places.owner(base);
        for (r, m) in node.results.iter().zip(views) {
            self.places.set_owner(*r, owner);
            self.settle(*r, Place { buffer: place.buffer, layout: m.layout }, m.dtype)?;
        }
        Ok(())
    }
}

fn views_of(rule: ViewRule, args: &[Arg<Meta, Scalar>]) -> Option<Vec<Meta>> {
    match rule.of(args) {
        Ok(ViewOutcome::Views(views)) => Some(views.into_vec()),
        _ => None,
    }
}

/// Eager views of a base whose place has the eager strides and starts elsewhere; `None` where that is inside of an element.
fn shifted(views: &[Meta], eager: &Meta, place: &Place) -> Option<Vec<Meta>> {
    let bytes = (place.layout.offset - eager.layout.offset) * eager.dtype.size() as i64;
    let shift = |m: &Meta| {
        let size = m.dtype.size() as i64;
        let layout = Layout { offset: m.layout.offset + bytes / size, ..m.layout.clone() };
        (bytes % size == 0).then_some(Meta { dtype: m.dtype, layout })
    };
    views.iter().map(shift).collect()
}

/// The view rule of a node, the position of its base, and whether the node copies where strides cannot express the view: the
/// copy form of a view has the same elements, and a kernel for them.
pub(crate) fn view_rule(node: &Node) -> Option<(ViewRule, usize, bool)> {
    let def = node.op.def();
    match (def.view, &def.movement) {
        _ if def.metadata || def.math.is_some() => None,
        (Some(rule), _) => Some((rule, def.base as usize, false)),
        (None, Some(Movement::View(rule))) => Some((*rule, 0, true)),
        _ => None,
    }
}
