//! Where a value would be of use before it is made: in the caller's memory, in the region of a scatter, in its part of a
//! `cat`, in the layout that a reshape wants, and the same for what it becomes through views and in place.

use super::Placer;
use super::choose::Write;
use super::memory::dense;
use super::views::view_rule;
use restride_ir::{
    Arg, Args, AssemblyPart, Buffer, BufferKind, Graph, HopCall, Layout, Meta, Movement, Node, NodeId, OpError, Place,
    Reason, RemarkKind, Result, Table, ValueId, border_layout, layout_bytes,
};
use restride_tensor::self_overlaps;
use std::collections::BTreeMap;

/// The pieces of an assembled result.
pub(super) type Pieces = fn(&Args<'_, Meta>, &Layout) -> std::result::Result<Vec<AssemblyPart>, OpError>;

/// How far views, wholes and what comes in place are followed.
const DEPTH: usize = 12;

/// Uses of the last of values that follow each other in place are asked for by each of them, if they are no more than this.
const FEW: usize = 16;

/// Memory that a value would be of use in.
#[derive(Clone, Debug)]
pub(super) enum Spot {
    /// There.
    At(Place),
    /// In memory of its own, lying like this.
    Fresh(Layout),
}

/// A wish.
#[derive(Clone, Debug)]
pub(super) struct Home {
    /// The memory; or why the value cannot have it, where that is known without looking at what else lies there.
    pub spot: std::result::Result<Spot, Reason>,
    /// What it is about; `None` where it is another value's wish.
    pub kind: Option<RemarkKind>,
    /// Whose memory it is.
    pub over: Option<ValueId>,
    /// Values whose cells there nobody reads before they are replaced.
    pub except: Vec<ValueId>,
    /// Bytes of what it serves.
    bytes: i64,
}

/// For each value, the last of the values that can follow it in the same cells, each over the one before it.
pub(super) fn successors(
    graph: &Graph,
    types: &Table<ValueId, Option<Meta>>,
    last_use: &Table<ValueId, usize>,
) -> Table<ValueId, Option<ValueId>> {
    let mut end: Table<ValueId, Option<ValueId>> = Table::new();
    for (at, &id) in graph.order.iter().enumerate().rev() {
        let node = &graph.nodes[id];
        let def = node.op.def();
        let dying = |v: ValueId, r: ValueId| {
            last_use[v] == at
                && match (&types[v], &types[r]) {
                    (Some(a), Some(b)) => a.dtype.size() == b.dtype.size() && a.layout.sizes == b.layout.sizes,
                    _ => false,
                }
        };
        if let Ok(Some(call)) = HopCall::of(graph, node) {
            for (k, r) in node.results.iter().enumerate() {
                let carried = call.takes_over(k).map(|(_, v)| v);
                if let Some(v) = carried.filter(|v| dying(*v, *r) && end[*v].is_none()) {
                    end.set(v, Some(end[*r].unwrap_or(*r)));
                }
            }
            continue;
        }
        let mut follow = |arg: usize, result: usize| {
            let (Some(Arg::Value(v)), Some(r)) = (node.args.get(arg), node.results.get(result)) else { return };
            if dying(*v, *r) && end[*v].is_none() {
                end.set(*v, Some(end[*r].unwrap_or(*r)));
            }
        };
        match def.movement {
            Some(Movement::Scatter { base, .. }) => follow(base as usize, 0),
            _ => def.reuse.iter().for_each(|l| follow(l.arg as usize, l.result as usize)),
        }
    }
    end
}

impl Placer<'_> {
    /// Where a value that the node at `at` makes would be of use, best first.
    pub(super) fn homes(&mut self, at: usize, v: ValueId) -> Result<Vec<Home>> {
        let mut out = Vec::new();
        self.wishes_to_the_end(at, v, 0, &mut out)?;
        if self.options.vary.is_some() {
            out.retain(|_| !self.skips(at));
        }
        Ok(out)
    }

    /// The placement hints for a value, and for the last of those that follow it in the same cells.
    fn wishes_to_the_end(&mut self, at: usize, v: ValueId, depth: usize, out: &mut Vec<Home>) -> Result<()> {
        self.wishes(at, v, depth, out)?;
        let Some(end) = self.ends[v] else { return Ok(()) };
        let from = out.len();
        if self.uses[end].len() <= FEW {
            self.wishes(at, end, depth + 1, out)?;
        } else {
            let ty = self.ty(end)?.clone();
            self.of_caller(end, &ty, out)?;
        }
        out[from..].iter_mut().for_each(|h| h.kind = None);
        Ok(())
    }

    fn wishes(&mut self, at: usize, v: ValueId, depth: usize, out: &mut Vec<Home>) -> Result<()> {
        let ty = self.ty(v)?.clone();
        if depth > DEPTH || ty.layout.sizes.contains(&0) {
            return Ok(());
        }
        self.of_caller(v, &ty, out)?;
        let from = out.len();
        let graph = self.graph;
        let uses = self.uses[v].clone();
        for at_use in uses {
            let id = graph.order[at_use];
            let node = &graph.nodes[id];
            let def = node.op.def();
            match def.movement {
                Some(Movement::Scatter { base, src, region }) => {
                    if let (Some(Arg::Value(b)), Some(Arg::Value(s))) =
                        (node.args.get(base as usize), node.args.get(src as usize))
                        && *s == v
                        && *b != v
                    {
                        out.extend(self.in_region(at, at_use, id, *b, v, &region)?);
                    }
                }
                Some(Movement::Assemble(pieces)) => {
                    if self.options.straight
                        && let Some((place, except)) = self.part_of(at, id, v, pieces, depth)?
                    {
                        let (kind, over) = (Some(RemarkKind::AssembleInPlace), Some(node.results[0]));
                        let bytes = self.bytes_of(node.results[0]);
                        out.push(Home { spot: Ok(Spot::At(place)), kind, over, except, bytes });
                    }
                }
                _ => self.through(at, id, node, v, depth, out)?,
            }
        }
        // What serves more bytes first; a part of a `cat` that holds the others' parts too is the largest.
        out[from..].sort_by_key(|h| std::cmp::Reverse(h.bytes));
        Ok(())
    }

    /// The caller's memory for a value that the caller gets.
    fn of_caller(&mut self, v: ValueId, ty: &Meta, out: &mut Vec<Home>) -> Result<()> {
        if !self.options.boundary {
            return Ok(());
        }
        let Some(wanted) = self.wanted.get(&v).cloned() else { return Ok(()) };
        let bytes = self.bytes_of(v);
        for i in wanted.inputs {
            let input = self.graph.inputs[i];
            let Some(place) = self.input_place(i) else { continue };
            if self.ty(input)?.dtype == ty.dtype && place.layout.sizes == ty.layout.sizes {
                let (kind, over) = (Some(RemarkKind::WriteBack), Some(input));
                out.push(Home { spot: Ok(Spot::At(place)), kind, over, except: Vec::new(), bytes });
            }
        }
        for i in wanted.outputs {
            let kind = Some(RemarkKind::OutputInCaller);
            let spot = match self.options.outputs_in_arena && !self.boundary.body {
                true => Err(Reason::SwitchedOff),
                false => Ok(Spot::At(self.output_place(i, v)?)),
            };
            out.push(Home { spot, kind, over: None, except: Vec::new(), bytes });
        }
        Ok(())
    }

    /// The region of a scatter's base, if the base is replaced by the scatter and not read as a whole before that. `None`
    /// where there is no such memory yet, or the scatter is a kernel of its own.
    fn in_region(
        &mut self,
        at: usize,
        at_use: usize,
        id: NodeId,
        base: ValueId,
        v: ValueId,
        rule: &restride_ir::ViewRule,
    ) -> Result<Option<Home>> {
        let ty = self.ty(v)?.clone();
        let Some((first, at_use)) = self.scattered_from(base, at_use)? else { return Ok(None) };
        let (whole, base) = (base, first);
        let Some(place) = self.memory.place(base).cloned() else { return Ok(None) };
        if self.ty(base)?.dtype != ty.dtype {
            return Ok(None);
        }
        // Nobody reads the base from now on but the scatter.
        let next = self.uses[base].get(self.uses[base].partition_point(|u| *u < at)).copied();
        let denied = if !self.options.straight || !self.options.scatter {
            Some(Reason::SwitchedOff)
        } else if !self.memory.may_write(place.buffer) {
            Some(Reason::CallerVisible)
        } else if self_overlaps(&place.layout) != Some(false) {
            Some(Reason::NotDense)
        } else if next == Some(at) {
            Some(Reason::PartialOverlap)
        } else if next != Some(at_use) {
            Some(Reason::StillRead { by: next.map(|u| self.graph.order[u]) })
        } else if self.last_use[base] != at_use {
            Some(Reason::StillRead { by: self.reader(base, at_use) })
        } else {
            None
        };
        let spot = match denied {
            Some(reason) => Err(reason),
            None => match self.region_of(id, whole, rule, &place.layout)? {
                None => Err(Reason::NoStrides),
                Some(region) if region.sizes != ty.layout.sizes => Err(Reason::SizesDiffer),
                Some(layout) => Ok(Spot::At(Place { buffer: place.buffer, layout })),
            },
        };
        if whole != base && spot.is_err() {
            // When the source is made it may be another reason.
            return Ok(None);
        }
        let (kind, over) = (Some(RemarkKind::SourceInRegion), Some(base));
        Ok(Some(Home { spot, kind, over, except: self.replaced_with(base), bytes: self.bytes_of(base) }))
    }

    /// The base that a scatter's base will be on, and the scatter that reads that: itself, or the first of the scatters that
    /// are still to come and whose sources lie in their regions already. `None` where that is not known.
    fn scattered_from(&self, base: ValueId, at_use: usize) -> Result<Option<(ValueId, usize)>> {
        let (mut base, mut at_use, mut between) = (base, at_use, Vec::new());
        while self.memory.place(base).is_none() {
            let maker = self.makers[base].map(|at| (at, self.graph.order[at]));
            let Some((at, id)) = maker.filter(|_| between.len() < DEPTH) else { return Ok(None) };
            let node = &self.graph.nodes[id];
            let Some(Movement::Scatter { base: b, src, region }) = node.op.def().movement else { return Ok(None) };
            let (Some(Arg::Value(from)), Some(Arg::Value(src))) =
                (node.args.get(b as usize), node.args.get(src as usize))
            else {
                return Ok(None);
            };
            if self.uses[base][..] != [at_use]
                || self.wanted.contains_key(&base)
                || self.types[*from] != self.types[base]
            {
                return Ok(None);
            }
            between.push((id, *from, *src, region));
            (base, at_use) = (*from, at);
        }
        let place = self.memory.place(base).expect("it has a place now");
        for (id, from, src, rule) in between {
            let region = self.region_of(id, from, &rule, &place.layout)?;
            let there =
                |l: Layout| self.memory.place(src).is_some_and(|p| p.buffer == place.buffer && p.layout.same_cells(&l));
            if !region.is_some_and(there) {
                return Ok(None);
            }
        }
        Ok(Some((base, at_use)))
    }

    /// A base and the values that it has replaced in its cells: who writes it takes nothing else from them.
    pub(super) fn replaced_with(&self, base: ValueId) -> Vec<ValueId> {
        std::iter::once(base).chain(self.replaced.get(&base).into_iter().flatten().copied()).collect()
    }

    /// The wishes for what a view, or a copy in the same order, makes of a value.
    fn through(
        &mut self,
        at: usize,
        id: NodeId,
        node: &Node,
        v: ValueId,
        depth: usize,
        out: &mut Vec<Home>,
    ) -> Result<()> {
        let def = node.op.def();
        let &[w] = &node.results[..] else { return Ok(()) };
        let (Some(from), Some(to)) = (&self.types[v], &self.types[w]) else { return Ok(()) };
        if !self.options.views
            || !self.options.straight
            || from.dtype != to.dtype
            || from.layout.numel() != to.layout.numel()
        {
            return Ok(());
        }
        let (from, to) = (from.clone(), to.clone());
        let same = matches!(def.movement, Some(Movement::Same));
        let (rule, base) = match view_rule(node) {
            Some((rule, base, _)) => (Some(rule), base),
            None if same => (None, 0),
            None => return Ok(()),
        };
        if !matches!(node.args.get(base), Some(Arg::Value(a)) if *a == v) {
            return Ok(());
        }
        if def.strided {
            return self.through_strides(at, (w, &from, &to), depth, out);
        }
        let seen = match rule {
            None => Some(Layout::contiguous(&to.layout.sizes)),
            Some(_) => self.shown(id, v, 0, &Layout::contiguous(&from.layout.sizes))?,
        };
        let Some(seen) = seen else { return Ok(()) };
        let mut found = Vec::new();
        self.wishes_to_the_end(at, w, depth + 1, &mut found)?;
        if same && from.layout.sizes != to.layout.sizes {
            // Where the elements lie in the order of the copy there is nothing to copy.
            let bytes = self.bytes_of(w);
            let spot = Ok(Spot::Fresh(dense(&to)));
            found.push(Home { spot, kind: None, over: None, except: Vec::new(), bytes });
        }
        for home in found {
            let spot = match &home.spot {
                Ok(Spot::At(p)) => before(&p.layout, &seen, &from.layout.sizes)
                    .map(|layout| Ok(Spot::At(Place { buffer: p.buffer, layout }))),
                Ok(Spot::Fresh(l)) => before(l, &seen, &from.layout.sizes).map(|l| Ok(Spot::Fresh(l))),
                Err(reason) => Some(Err(*reason)),
            };
            out.extend(spot.map(|spot| Home { spot, ..home }));
        }
        Ok(())
    }

    /// The placement hints for what a view by strides makes of all of a value: memory that lies as the view is declared, from its
    /// begin on, where the value lies as it is declared itself.
    fn through_strides(
        &mut self,
        at: usize,
        (w, from, to): (ValueId, &Meta, &Meta),
        depth: usize,
        out: &mut Vec<Home>,
    ) -> Result<()> {
        let whole = |l: &Layout| l.offset == 0 && l.is_dense();
        if !whole(&from.layout) || !whole(&to.layout) {
            return Ok(());
        }
        let mut found = Vec::new();
        self.wishes_to_the_end(at, w, depth + 1, &mut found)?;
        for home in found {
            if let Ok(Spot::At(p)) = &home.spot
                && p.layout == to.layout
            {
                let place = Place { buffer: p.buffer, layout: from.layout.clone() };
                out.push(Home { spot: Ok(Spot::At(place)), ..home });
            }
        }
        Ok(())
    }

    /// The part of an assembled result that is a value, which is one of its operands once. The whole gets its memory with
    /// the first that asks.
    fn part_of(
        &mut self,
        at: usize,
        user: NodeId,
        v: ValueId,
        pieces: Pieces,
        depth: usize,
    ) -> Result<Option<(Place, Vec<ValueId>)>> {
        if !self.parts.contains_key(&user) {
            let mut parts: BTreeMap<ValueId, Option<Layout>> = BTreeMap::new();
            let whole = self.graph.nodes[user].results[0];
            let want = self.ty(whole)?.clone();
            let operands: Vec<ValueId> = self.graph.nodes[user].operands().collect();
            if operands.iter().all(|u| self.types[*u].as_ref().is_some_and(|t| t.dtype == want.dtype)) {
                let args = self.metas(user, |u| Ok(self.ty(u)?.clone()))?;
                let ahead = self.ahead(at, whole, &want, depth)?;
                for piece in pieces(&Args(&args), &ahead.0.layout)? {
                    // What is there twice cannot be in both places.
                    let u = operands[piece.operand];
                    parts.entry(u).and_modify(|p| *p = None).or_insert(Some(piece.region));
                }
                self.ahead.insert(whole, ahead);
            }
            self.parts.insert(user, parts);
        }
        let whole = self.graph.nodes[user].results[0];
        let Some((place, except)) = self.ahead.get(&whole) else { return Ok(None) };
        let part = self.parts[&user].get(&v).cloned().flatten();
        let sizes = &self.ty(v)?.layout.sizes;
        let part = part.filter(|p| p.sizes == *sizes);
        Ok(part.map(|layout| (Place { buffer: place.buffer, layout }, except.clone())))
    }

    /// Memory for a value that is made later, part by part: nobody who is read from now on may lose a cell to it, but for
    /// the values that come with it.
    fn ahead(&mut self, at: usize, v: ValueId, ty: &Meta, depth: usize) -> Result<(Place, Vec<ValueId>)> {
        let mut homes = Vec::new();
        self.wishes(at, v, depth + 1, &mut homes)?;
        let mut layout = None;
        for home in homes {
            match home.spot {
                Ok(Spot::At(place)) => {
                    let write = Write { at, id: self.graph.order[at], result: None, taken: &[] };
                    if self.may_write(&write, &place, ty, &home.except)?.0 == Reason::Taken {
                        return Ok((place, home.except));
                    }
                }
                Ok(Spot::Fresh(fresh)) => {
                    layout.get_or_insert(fresh);
                }
                Err(_) => {}
            }
        }
        Ok((self.memory.fresh_as(layout.unwrap_or_else(|| dense(ty)), ty.dtype), Vec::new()))
    }

    /// Memory for a result that is moved there, piece by piece, while the node's operands are read.
    pub(super) fn home(&mut self, at: usize, id: NodeId, v: ValueId) -> Result<Place> {
        let ty = self.ty(v)?.clone();
        let layout = match self.wished(&Write { at, id, result: None, taken: &[] }, v, &ty)? {
            Spot::At(place) => return Ok(place),
            Spot::Fresh(layout) => layout,
        };
        Ok(self.memory.fresh_as(layout, ty.dtype))
    }

    /// The best of the places where a value that is about to be written is wanted and may be, or how it is wanted in
    /// memory of its own.
    pub(super) fn wished(&mut self, write: &Write<'_>, v: ValueId, ty: &Meta) -> Result<Spot> {
        let bytes = self.bytes_of(v);
        let mut layout = None;
        // Where strides are the operator's business the result lies as eager has it, in memory of its own.
        let as_eager = write.result.is_some() && self.graph.nodes[write.id].op.def().strided;
        let homes = if as_eager || self.avoids(v) { Vec::new() } else { self.homes(write.at, v)? };
        for home in homes {
            let place = match home.spot {
                Ok(Spot::At(place)) => place,
                Ok(Spot::Fresh(fresh)) => {
                    layout.get_or_insert(fresh);
                    continue;
                }
                Err(reason) => {
                    self.remark_home(write.id, &home.kind, reason, bytes, home.over);
                    continue;
                }
            };
            let (reason, on) = self.may_write(write, &place, ty, &home.except)?;
            self.remark_home(write.id, &home.kind, reason, bytes, home.over);
            if reason == Reason::Taken {
                self.chose(v, if home.kind.is_some() { bytes } else { 0 });
                if !home.except.is_empty() {
                    self.replaced.insert(v, home.except);
                }
                if on.is_some() {
                    self.remark(write.id, RemarkKind::ReuseOperand, Reason::Taken, bytes, on);
                }
                return Ok(Spot::At(place));
            }
            if home.kind.is_some() {
                self.regret(bytes);
            }
        }
        Ok(Spot::Fresh(layout.unwrap_or_else(|| dense(ty))))
    }

    /// The place of an input's memory, as it lies at the start.
    pub(super) fn input_place(&self, i: usize) -> Option<Place> {
        self.input_places.get(i).cloned().flatten()
    }

    /// The place of an output in the caller's memory, made at the first call.
    pub(super) fn output_place(&mut self, i: usize, v: ValueId) -> Result<Place> {
        if let Some(place) = self.output_places.get(&i) {
            return Ok(place.clone());
        }
        let ty = self.ty(v)?.clone();
        let layout = border_layout(&ty);
        let bytes = layout_bytes(&layout, ty.dtype.size());
        let buffer = self.memory.add(Buffer { kind: BufferKind::Output(i), bytes });
        let place = Place { buffer, layout };
        self.output_places.insert(i, place.clone());
        Ok(place)
    }

    /// Whether a choice is left out for the sake of variety.
    pub(super) fn skips(&mut self, at: usize) -> bool {
        let Some(state) = &mut self.options.vary else { return false };
        *state = (*state ^ at as u64).wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (*state >> 33) % 4 == 0
    }
}

/// How a value of these sizes lies if what a view sees of it lies at `target`. `seen` is what the view sees of a value that
/// lies row by row. `None` where no strides say it.
pub(super) fn before(target: &Layout, seen: &Layout, sizes: &[i64]) -> Option<Layout> {
    // The view's dimensions in the order of the value's elements.
    let mut order: Vec<usize> = (0..seen.rank()).collect();
    order.sort_by_key(|d| (seen.sizes[*d] <= 1, std::cmp::Reverse(seen.strides[*d])));
    let pick = |l: &Layout| {
        let (sizes, strides): (Vec<i64>, Vec<i64>) = order.iter().map(|d| (l.sizes[*d], l.strides[*d])).unzip();
        Layout::strided(&sizes, &strides, l.offset)
    };
    if target.sizes != seen.sizes || seen.offset != 0 || !pick(seen).is_contiguous() {
        return None;
    }
    pick(target).view(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `view(before(target)) == target`, for permutations and splits.
    #[test]
    fn what_a_view_saw_before() {
        let value = [2, 12, 5];
        let rows = Layout::contiguous(&value);
        let seen = rows.view(&[2, 3, 4, 5]).and_then(|l| l.permute(&[0, 2, 1, 3]).ok()).expect("a view");
        let target = Layout::strided(&seen.sizes, &[1000, 10, 100, 1], 7);
        assert!(before(&target, &seen, &value).is_none(), "3 and 4 do not merge: {target:?}");
        let target = Layout::strided(&seen.sizes, &[1000, 10, 40, 1], 7);
        let lies = before(&target, &seen, &value).expect("merges");
        assert_eq!(lies, Layout::strided(&value, &[1000, 10, 1], 7));
        let again = lies.view(&[2, 3, 4, 5]).and_then(|l| l.permute(&[0, 2, 1, 3]).ok()).expect("a view");
        assert!(again.same_cells(&target));
        // A part of the value is no whole.
        let half = rows.slice(1, Some(&0), Some(&6), &1).expect("a slice");
        assert!(before(&half, &half, &value).is_none());
    }
}
