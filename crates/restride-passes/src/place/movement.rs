//! Operators that only move data: in place where possible, by moves otherwise.

use super::Placer;
use super::assemble::is_at;
use super::overwrite::Write;
use super::places::default_layout;
use restride_ir::{
    Arg, Error, Layout, Meta, Movement, NodeId, Place, Reason, RemarkKind, Result, ValueId, ViewOutcome, ViewRule,
    border_layout,
};
use restride_tensor::{Overlap, overlap_bytes, self_overlaps};

impl Placer<'_> {
    /// Places the result of a node that only moves data; false for other nodes, and where its kernel must run.
    pub(super) fn place_movement(&mut self, at: usize, id: NodeId) -> Result<bool> {
        let node = &self.facts.graph.nodes[id];
        match node.op.def().movement {
            None | Some(Movement::View(_)) => Ok(false),
            Some(Movement::Same) => self.place_same(at, id),
            Some(Movement::Scatter { base, src, region }) => {
                let arg = |k: u8| node.args.get(k as usize);
                let (Some(&Arg::Value(base)), Some(&Arg::Value(src))) = (arg(base), arg(src)) else {
                    return Ok(false);
                };
                if self.facts.ty(base)?.dtype != self.facts.ty(src)?.dtype {
                    return Ok(false);
                }
                self.place_scatter(at, id, base, src, region)
            }
            Some(Movement::Assemble(pieces)) => self.assemble(at, id, pieces),
        }
    }

    /// `clone` and its like: the result shares the operand's place, or is moved.
    fn place_same(&mut self, at: usize, id: NodeId) -> Result<bool> {
        let facts = self.facts;
        let node = &facts.graph.nodes[id];
        let (Some(&Arg::Value(from)), &[r]) = (node.args.first(), &node.results[..]) else { return Ok(false) };
        let (have, want) = (facts.ty(from)?, facts.ty(r)?);
        let Some(place) = self.places.find(from).cloned() else { return Ok(false) };
        if have.dtype != want.dtype || have.layout.numel() != want.layout.numel() {
            return Ok(false);
        }
        let bytes = facts.bytes_of(r);
        let layout = if self.options.views { place.layout.view(&want.layout.sizes) } else { None };
        if let Some(layout) = layout.filter(|_| !self.revision.avoids(r)) {
            // A later write to the original may need the copy after all.
            self.revision.chose(r, bytes);
            self.places.inherit(r, from);
            self.settle(r, Place { buffer: place.buffer, layout }, want.dtype)?;
            self.places.push_free(id);
            self.remark(id, RemarkKind::ViewOnBase, Reason::Taken, bytes, Some(from));
            return Ok(true);
        }
        if have.layout.sizes != want.layout.sizes {
            // No strides express the other shape: the kernel takes elements in logical order.
            return Ok(false);
        }
        let reason = if self.options.views { Reason::InTheWay } else { Reason::SwitchedOff };
        self.remark(id, RemarkKind::ViewOnBase, reason, bytes, Some(from));
        let to = self.moved_place(&Write::moved(at, id), r)?;
        self.settle(r, to.clone(), want.dtype)?;
        self.places.push_move(from, place, to);
        self.places.push_free(id);
        Ok(true)
    }

    /// The region of a scatter on a base with the layout `of`; `None` if strides cannot express it.
    pub(super) fn region_of(&self, id: NodeId, base: ValueId, rule: &ViewRule, of: &Layout) -> Result<Option<Layout>> {
        let facts = self.facts;
        let declared = facts.known_type(facts.graph.nodes[id].results[0]).is_some_and(|ty| ty.layout == *of);
        let Some(region) = facts.regions.get(&id).filter(|_| declared) else {
            return self.region_on(id, base, rule, of);
        };
        if region.get().is_none() {
            let _ = region.set(self.region_on(id, base, rule, of)?);
        }
        Ok(region.get().cloned().flatten())
    }

    fn region_on(&self, id: NodeId, base: ValueId, rule: &ViewRule, of: &Layout) -> Result<Option<Layout>> {
        let on = |layout: &Layout| -> Result<Option<Layout>> {
            Ok(match rule.of(&self.args_with(id, base, layout)?)? {
                ViewOutcome::Views(v) => v.first().map(|m| m.layout.clone()),
                _ => None,
            })
        };
        if !self.facts.graph.nodes[id].op.def().strided {
            return on(of);
        }
        // The region is given by strides of eager PyTorch's base.
        let eager = &self.facts.ty(base)?.layout;
        if (0..of.rank()).any(|d| of.sizes[d] > 1 && of.strides[d] != eager.strides[d]) {
            return Ok(None);
        }
        Ok(on(eager)?.map(|l| Layout { offset: l.offset + of.offset - eager.offset, ..l }))
    }

    fn place_scatter(&mut self, at: usize, id: NodeId, base: ValueId, src: ValueId, rule: ViewRule) -> Result<bool> {
        let r = self.facts.graph.nodes[id].results[0];
        let ty = self.facts.ty(r)?;
        let (place, mut from) = (self.places.get(base)?, self.places.get(src)?);
        let bytes = self.facts.bytes_of(base);
        let declared = self.region_of(id, base, &rule, &ty.layout)?;
        if declared.as_ref().is_some_and(|r| self_overlaps(r) != Some(false)) {
            // The kernel decides which element stays in a cell.
            return Ok(false);
        }
        let region = match place.layout == ty.layout {
            _ if !self.options.scatter => None,
            true => declared,
            false => self.region_of(id, base, &rule, &place.layout)?,
        };
        let mut reason = Reason::SwitchedOff;
        if let Some(region) = region {
            let to = Place { buffer: place.buffer, layout: region };
            // A source that was made in the region has replaced the base's elements in it.
            reason = match is_at(&from, &to) {
                true => Reason::Taken,
                false => self.may_scatter(at, base, src, &place, &to, ty),
            };
            if reason != Reason::Taken && self.make_way(at, id, base, src, &to)? {
                reason = Reason::Taken;
                from = self.places.get(src)?;
            }
            if reason == Reason::Taken {
                self.places.set_owner(r, self.places.owner(base));
                self.places.inherit(r, base);
                self.settle(r, place, ty.dtype)?;
                if !is_at(&from, &to) {
                    self.remark_moved(id, src, RemarkKind::SourceInRegion);
                    self.places.push_move(src, from, to);
                }
                self.places.push_free(id);
                self.remark(id, RemarkKind::ScatterInBase, Reason::Taken, bytes, Some(base));
                return Ok(true);
            }
        }
        self.remark(id, RemarkKind::ScatterInBase, reason, bytes, Some(base));
        // The base is carried over to memory of the result's own, then the region is replaced.
        let mut to = self.moved_place(&Write::moved(at, id), r)?;
        if self.region_of(id, base, &rule, &to.layout)?.is_none() {
            // The region is given by strides of eager PyTorch's base, be they with gaps.
            let eager = border_layout(self.facts.ty(base)?);
            to = self.places.fresh(eager, ty.dtype);
        }
        let Some(layout) = self.region_of(id, base, &rule, &to.layout)? else {
            return Err(Error::unsupported("a scatter by strides that its base does not have"));
        };
        self.settle(r, to.clone(), ty.dtype)?;
        self.remark_moved(id, src, RemarkKind::SourceInRegion);
        let region = Place { buffer: to.buffer, layout };
        self.places.push_move(base, place, to);
        self.places.push_move(src, from, region);
        self.places.push_free(id);
        Ok(true)
    }

    /// Moves the values that are still read out of the region of a scatter, if one of them was made there in place of elements
    /// of the base: then the base cannot be copied as a whole. False if the base has lost no elements, as one that is read later.
    fn make_way(&mut self, at: usize, id: NodeId, base: ValueId, src: ValueId, region: &Place) -> Result<bool> {
        if self.places.outlives(base, at) {
            return Ok(false);
        }
        let dtype = self.facts.ty(base)?.dtype;
        let except = self.places.replaced_with(base);
        let mut inside = self.places.losers(region, dtype, at, at + 1, &except);
        let from = self.places.get(src)?;
        let how = overlap_bytes(&from.layout, dtype.size(), &region.layout, dtype.size());
        if from.buffer == region.buffer && how != Overlap::Disjoint && inside.iter().all(|l| l.0 != src) {
            inside.push((src, how));
        }
        let root = self.places.owner(base);
        let took = |v: ValueId| {
            let gone = &self.places.replaced[self.places.owner(v)];
            gone.iter().any(|g| self.places.owner(*g) == root)
        };
        if !inside.iter().any(|l| took(l.0)) {
            return Ok(false);
        }
        for (v, _) in inside {
            let ty = self.facts.ty(v)?;
            self.remark(id, RemarkKind::LayoutCopy, Reason::InTheWay, self.facts.bytes_of(v), Some(v));
            self.show_early(at, v);
            let to = self.places.fresh(default_layout(ty), ty.dtype);
            self.places.push_move(v, self.places.get(v)?, to.clone());
            self.places.set(v, to, ty.dtype);
        }
        Ok(true)
    }

    /// Whether a scatter may write `region` in the memory of its base, which is stored at `place`.
    fn may_scatter(
        &mut self,
        at: usize,
        base: ValueId,
        src: ValueId,
        place: &Place,
        region: &Place,
        ty: &Meta,
    ) -> Reason {
        if !self.places.is_writable(place.buffer) {
            // A copy of the base that was left out is made here after all, and the source is moved as well.
            self.revision.in_the_way = vec![base];
            self.revision.regret(self.facts.bytes_of(base) + self.facts.bytes_of(src), &self.places);
            return Reason::CallerVisible;
        }
        if self_overlaps(&place.layout) != Some(false) || self_overlaps(&region.layout) != Some(false) {
            return Reason::NotDense;
        }
        if base == src || self.places.outlives(base, at) {
            return Reason::StillRead { by: self.reader(base, at) };
        }
        // A source in the same buffer is moved whole only if it is apart from the region.
        if let Some(from) = self.places.find(src).filter(|from| from.buffer == place.buffer) {
            let size = ty.dtype.size();
            let how = overlap_bytes(&from.layout, size, &region.layout, size);
            if !matches!(how, Overlap::Disjoint | Overlap::Same) {
                return Reason::PartialOverlap;
            }
        }
        let except = self.places.replaced_with(base);
        let losers = self.places.losers(region, ty.dtype, at, at + 1, &except);
        let Some(&(first, how)) = losers.first() else { return Reason::Taken };
        self.revision.in_the_way = losers.iter().map(|l| l.0).collect();
        self.revision.regret(self.facts.bytes_of(base), &self.places);
        match how {
            Overlap::Unknown => Reason::UnknownOverlap,
            _ => Reason::StillRead { by: self.reader(first, at) },
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::place::{Avoid, PlaceOptions, place_avoiding};
    use restride_ir::Step;

    /// Moves and nodes without work of the first attempt: `%z` is a copy that is left out, of what replaced elements of the base. `%s`
    /// replaces the same, and `rest` reads `%z` after that.
    fn steps_with(rest: &str) -> Vec<String> {
        let source = format!(
            "stage: functional
            graph(%a: f64[1], %b: f64[3]) {{
              %base: f64[3] = aten.sin.default(%b)
              %r: f64[1] = aten.cos.default(%a)
              %w: f64[3] = aten.slice_scatter.default(%base, %r, 0, 1, 2)
              %z: f64[1] = aten.clone.default(%r)
              %s: f64[1] = aten.exp.default(%r)
              %c: f64[3] = aten.slice_scatter.default(%w, %s, 0, 1, 2)
              {rest}
              %d: f64[3] = aten.sin.default(%c)
              return %d, %m
            }}"
        );
        let program = restride_ir::text::parse(&source, &restride_ops::lookup).expect("a program");
        let options = PlaceOptions { revise: false, ..PlaceOptions::default() };
        let placed = place_avoiding(&program, &options, &Avoid::new()).expect("a placement");
        let graph = program.graph();
        let steps = placed.placement.steps.iter().filter_map(|s| match s {
            Step::Move { value, .. } => Some(format!("move {}", graph.values[*value].name)),
            Step::Free { node } => Some(format!("free {}", graph.values[graph.nodes[*node].results[0]].name)),
            Step::Run { .. } => None,
        });
        steps.collect()
    }

    fn moves_the_base(steps: &[String]) -> bool {
        steps.iter().any(|s| s == "move base" || s == "move w")
    }

    #[test]
    fn what_took_a_base_s_elements_makes_way_for_the_source() {
        let steps = steps_with(
            "%n: f64[1] = aten.mul.Tensor(%z, %s)
              %m: f64[] = aten.sum.default(%n)",
        );
        assert!(!moves_the_base(&steps), "{steps:?}");
        assert!(steps.contains(&"move z".to_string()), "{steps:?}");
    }

    /// `%late` is placed with its base `%z`, and is moved before its turn.
    #[test]
    fn a_view_that_makes_way_before_its_turn_is_shown_first() {
        let steps = steps_with(
            "%late: f64[] = aten.view.default(%z, [])
              %m: f64[] = aten.sin.default(%late)",
        );
        let of_late: Vec<&String> = steps.iter().filter(|s| s.ends_with(" late")).collect();
        assert_eq!(of_late, ["free late", "move late"], "{steps:?}");
        assert!(!moves_the_base(&steps), "{steps:?}");
    }
}
