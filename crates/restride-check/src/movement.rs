//! Nodes without work: facts about their results follow from facts about their operands.

use crate::FaultKind;
use crate::facts::Hole;
use crate::placement::PlacementWalk;
use restride_ir::{
    Arg, Args, Expr, Layout, Meta, Movement, Node, NodeId, Place, Scalar, ValueId, ViewOutcome, ViewRule,
};
use restride_tensor::{Overlap, overlap_bytes};

type MovementResult<T> = Result<T, String>;

/// A value found in a place, except in holes.
struct FoundValue {
    value: ValueId,
    place: Place,
    holes: Vec<Hole>,
}

impl PlacementWalk<'_> {
    /// A node whose results are in place already.
    pub(crate) fn free(&mut self, id: NodeId) {
        let node = &self.graph.nodes[id];
        let found = match self.follow(node) {
            Ok(found) => found,
            Err(what) => return self.fault(FaultKind::Malformed, None, None, what),
        };
        for &r in &node.results {
            let empty = self.metas[r].as_ref().is_some_and(|m| m.layout.sizes.contains(&0));
            if !empty && self.needed_later(r) && !found.iter().any(|f| f.value == r) {
                let (place, element) = self.gap(id, r).unzip();
                let what = "does not follow from where the node's operands lie";
                self.fault_at(FaultKind::NotThere, Some(r), place.as_ref(), element, what);
            }
        }
        for f in found {
            if self.placed(f.value, &f.place).is_some() {
                self.learn(f.value, &f.place, f.holes);
            }
        }
    }

    /// Results of a node by its declared element map, from all facts about its operands.
    fn follow(&self, node: &Node) -> MovementResult<Vec<FoundValue>> {
        let def = node.op.def();
        let mut found = Vec::new();
        if def.math.is_none() && !def.metadata {
            if let Some(rule) = &def.view {
                self.views(node, rule, def.base as usize, &mut found)?;
            }
            match &def.movement {
                None => {}
                Some(Movement::View(rule)) => self.views(node, rule, 0, &mut found)?,
                Some(Movement::Same) => self.same(node, &mut found)?,
                Some(Movement::Scatter { base, src, region }) => self.scatter(node, *base, *src, region, &mut found)?,
                Some(Movement::Assemble(pieces)) => self.assemble(node, *pieces, &mut found)?,
            }
            if def.view.is_some() || def.movement.is_some() {
                return Ok(found);
            }
        }
        Err(format!("{} costs something: it is no view and does not only move data", node.op))
    }

    fn operand(&self, node: &Node, arg: usize) -> MovementResult<(ValueId, &Meta)> {
        match node.args.get(arg) {
            Some(Arg::Value(v)) => Ok((*v, self.meta(*v)?)),
            _ => Err(format!("argument {arg} of {} is not a tensor", node.op)),
        }
    }

    fn meta(&self, v: ValueId) -> MovementResult<&Meta> {
        self.metas[v].as_ref().ok_or_else(|| format!("%{} is no tensor of known sizes", self.graph.values[v].name))
    }

    /// Arguments of a rule, with one operand in a given layout.
    pub(crate) fn args(&self, node: &Node, at: Option<(usize, &Layout)>) -> MovementResult<Vec<Arg<Meta, Scalar>>> {
        let number = |e: &Expr| e.constant().ok_or_else(|| format!("the number {e} is not known"));
        let mut args = Arg::try_map_all(&node.args, |v| self.meta(*v).cloned(), number)?;
        if let Some((i, layout)) = at
            && let Some(Arg::Value(meta)) = args.get_mut(i)
        {
            meta.layout = layout.clone();
        }
        Ok(args)
    }

    /// Layouts of the views of a base in a layout; `None` if the base's strides allow no view.
    pub(crate) fn views_at(
        &self,
        node: &Node,
        rule: &ViewRule,
        base: usize,
        layout: &Layout,
    ) -> MovementResult<Option<Vec<Meta>>> {
        let (_, eager) = self.operand(node, base)?;
        // A stride-reading operator means eager's strides; a base with these strides may have another offset.
        let strided = node.op.def().strided;
        if strided && !layout.same_cells(&Layout { offset: layout.offset, ..eager.layout.clone() }) {
            return Ok(None);
        }
        let args = self.args(node, Some((base, if strided { &eager.layout } else { layout })))?;
        let Ok(ViewOutcome::Views(mut views)) = rule.of(&args) else { return Ok(None) };
        if strided {
            let bytes = (layout.offset - eager.layout.offset).checked_mul(eager.dtype.size() as i64);
            for v in &mut views {
                let size = v.dtype.size() as i64;
                match bytes {
                    Some(bytes) if bytes % size == 0 => v.layout.offset += bytes / size,
                    _ => return Ok(None),
                }
                // Such a view can reach cells beyond its base, about which no fact is known.
                let how = overlap_bytes(&v.layout, v.dtype.size(), layout, eager.dtype.size());
                if !v.layout.sizes.contains(&0) && !matches!(how, Overlap::Same | Overlap::Inside) {
                    return Ok(None);
                }
            }
        }
        Ok(Some(views.into_vec()))
    }

    fn views(&self, node: &Node, rule: &ViewRule, base: usize, found: &mut Vec<FoundValue>) -> MovementResult<()> {
        let (v, _) = self.operand(node, base)?;
        for (buffer, fact) in self.memory.of(v) {
            let Some(views) = self.views_at(node, rule, base, &fact.layout)? else { continue };
            if views.len() != node.results.len() {
                return Err(format!("{} gives {} views for {} results", node.op, views.len(), node.results.len()));
            }
            for (&value, view) in node.results.iter().zip(views) {
                if self.meta(value)?.dtype != view.dtype {
                    return Err(format!("%{} is not of {}", self.graph.values[value].name, view.dtype));
                }
                let holes = fact.holes_in(&view.layout, view.dtype.size());
                found.push(FoundValue { value, place: Place { buffer, layout: view.layout }, holes });
            }
        }
        Ok(())
    }

    fn same(&self, node: &Node, found: &mut Vec<FoundValue>) -> MovementResult<()> {
        let (v, from) = self.operand(node, 0)?;
        let value = *node.results.first().ok_or("a node without a result")?;
        let to = self.meta(value)?;
        if from.dtype != to.dtype {
            return Err(format!("{} changes the element type", node.op));
        }
        for (buffer, fact) in self.memory.of(v) {
            if let Some(layout) = fact.layout.view(&to.layout.sizes) {
                found.push(FoundValue { value, place: Place { buffer, layout }, holes: fact.holes });
            }
        }
        Ok(())
    }

    fn scatter(
        &self,
        node: &Node,
        base: u8,
        src: u8,
        rule: &ViewRule,
        found: &mut Vec<FoundValue>,
    ) -> MovementResult<()> {
        let (base_value, base_meta) = self.operand(node, base as usize)?;
        let (src_value, src_meta) = self.operand(node, src as usize)?;
        let value = *node.results.first().ok_or("a node without a result")?;
        let result = self.meta(value)?;
        if base_meta.dtype != result.dtype || base_meta.layout.sizes != result.layout.sizes {
            return Err(format!("{} does not give a tensor like its base", node.op));
        }
        for (buffer, fact) in self.memory.of(base_value) {
            let Some(regions) = self.views_at(node, rule, base as usize, &fact.layout)? else { continue };
            let Some(region) = regions.into_iter().next() else { continue };
            let holes = if region.layout.sizes.contains(&0) {
                fact.holes
            } else {
                if region.dtype != src_meta.dtype {
                    return Err(format!("{} writes another element type than its region's", node.op));
                }
                let Some(src_fact) = self.memory.find(src_value, buffer, &region.layout) else { continue };
                let mut holes = fact.holes_outside(&region.layout, region.dtype.size());
                holes.extend(src_fact.holes.iter().cloned());
                holes
            };
            found.push(FoundValue { value, place: Place { buffer, layout: fact.layout }, holes });
        }
        Ok(())
    }

    fn assemble(
        &self,
        node: &Node,
        pieces: fn(&Args<'_, Meta>, &Layout) -> Result<Vec<restride_ir::AssemblyPart>, restride_ir::OpError>,
        found: &mut Vec<FoundValue>,
    ) -> MovementResult<()> {
        let value = *node.results.first().ok_or("a node without a result")?;
        let result = self.meta(value)?;
        let operands: Vec<ValueId> = node.operands().collect();
        let args = self.args(node, None)?;
        // The parts do not determine the whole, so try the result's place and the places where it is used.
        let mut places: Vec<&Place> = self.placement.places[value].iter().collect();
        places
            .extend(self.seen_at[value].iter().copied().filter(|p| Some(*p) != self.placement.places[value].as_ref()));
        for place in places {
            if place.layout.sizes != result.layout.sizes {
                continue;
            }
            let pieces = pieces(&Args(&args), &place.layout).map_err(|e| e.0)?;
            let (mut holes, mut there, mut numel) = (Vec::new(), true, 0i64);
            for piece in &pieces {
                let v = *operands.get(piece.operand).ok_or("a piece of no operand")?;
                let meta = self.meta(v)?;
                if meta.dtype != result.dtype || meta.layout.sizes != piece.region.sizes {
                    return Err(format!("%{} is not like its piece of the result", self.graph.values[v].name));
                }
                numel = numel.saturating_add(piece.region.numel());
                if piece.region.sizes.contains(&0) {
                    continue;
                }
                match self.memory.find(v, place.buffer, &piece.region) {
                    Some(fact) => holes.extend(fact.holes.iter().cloned()),
                    None => there = false,
                }
            }
            if numel != place.layout.numel() {
                return Err(format!("the pieces of {} are not the whole", node.op));
            }
            if there {
                found.push(FoundValue { value, place: place.clone(), holes });
            }
        }
        Ok(())
    }
}
