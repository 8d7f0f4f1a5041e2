//! Placement hints: places where a value would cost no copy later. These are the caller's memory, the region of a scatter, a
//! part of a `cat`, the layout that a reshape needs, and the same for the views of the value and for values made in place on it.

use super::Placer;
use super::facts::GraphFacts;
use super::overwrite::Write;
use super::places::default_layout;
use super::views::view_rule;
use restride_ir::{
    Arg, Args, AssemblyPart, Kernel, Layout, Meta, Movement, NodeId, OpError, Place, Reason, RemarkKind, Result,
    ValueId, ViewRule, sort_indices,
};
use restride_tensor::self_overlaps;
use std::collections::BTreeMap;

/// The parts of an assembled result with this layout.
pub(crate) type AssembleFn = fn(&Args<'_, Meta>, &Layout) -> std::result::Result<Vec<AssemblyPart>, OpError>;

/// How far views, wholes and values made in place are followed.
const DEPTH: usize = 12;

/// A value asks for the uses of its last successor if there are no more than this.
const FEW: usize = 16;

/// Memory for values that are assembled later, part by part.
///
/// Invariant: no value that is still read loses a cell to a reserved place, but for the exceptions that come with it.
#[derive(Default)]
pub(super) struct Hints {
    /// For each `cat`, the part that each operand is; `None` for an operand that occurs twice.
    parts: BTreeMap<NodeId, BTreeMap<ValueId, Option<Layout>>>,
    /// Places of wholes, with the values whose cells there may be overwritten.
    pub reserved: BTreeMap<ValueId, (Place, Vec<ValueId>)>,
}

/// Memory that a hint names.
#[derive(Clone, Debug)]
pub(super) enum HintTarget {
    /// Exactly this place.
    At(Place),
    /// A buffer of its own with this layout.
    Fresh(Layout),
}

/// A placement hint: where a value would cost no copy.
#[derive(Clone, Debug)]
pub(super) struct Hint {
    /// The memory; or why the value cannot have it, where that is known whatever else the memory holds.
    pub target: std::result::Result<HintTarget, Reason>,
    /// The kind of the remark on this hint; `None` for a hint passed on from another value.
    kind: Option<RemarkKind>,
    /// The value whose memory it is.
    over: Option<ValueId>,
    /// Values in this memory whose cells no node reads before they are replaced.
    except: Vec<ValueId>,
    /// Bytes of the value that the hint serves in the end.
    bytes: i64,
}

impl Placer<'_> {
    /// Hints for a value that the node at `at` makes, best first.
    pub(super) fn hints(&mut self, at: usize, v: ValueId) -> Result<Vec<Hint>> {
        let mut out = Vec::new();
        self.hints_of_chain(at, v, 0, &mut out)?;
        if self.options.vary.is_some() {
            out.retain(|_| !self.skips(at));
        }
        Ok(out)
    }

    /// Hints for a value, and for the last of the values that follow it in the same cells.
    fn hints_of_chain(&mut self, at: usize, v: ValueId, depth: usize, out: &mut Vec<Hint>) -> Result<()> {
        self.hints_of(at, v, depth, out)?;
        let Some(last) = self.facts.successors[v] else { return Ok(()) };
        let from = out.len();
        if self.places.uses[last].len() <= FEW {
            self.hints_of(at, last, depth + 1, out)?;
        } else {
            self.caller_hints(last, self.facts.ty(last)?, out)?;
        }
        out[from..].iter_mut().for_each(|h| h.kind = None);
        Ok(())
    }

    /// Hints for a view of all of a value. What follows the view would take cells that later readers of the value need.
    fn hints_of_view(&mut self, at: usize, v: ValueId, view: ValueId, depth: usize, out: &mut Vec<Hint>) -> Result<()> {
        match self.facts.ends[v] > self.facts.ends[view] {
            true => self.hints_of(at, view, depth, out),
            false => self.hints_of_chain(at, view, depth, out),
        }
    }

    fn hints_of(&mut self, at: usize, v: ValueId, depth: usize, out: &mut Vec<Hint>) -> Result<()> {
        let ty = self.facts.ty(v)?;
        if depth > DEPTH || ty.layout.sizes.contains(&0) {
            return Ok(());
        }
        self.caller_hints(v, ty, out)?;
        let from = out.len();
        let graph = self.facts.graph;
        for use_at in self.places.uses[v].clone() {
            let id = graph.order[use_at];
            let node = &graph.nodes[id];
            match node.op.def().movement {
                Some(Movement::Scatter { base, src, region }) => {
                    if let (Some(Arg::Value(b)), Some(Arg::Value(s))) =
                        (node.args.get(base as usize), node.args.get(src as usize))
                        && *s == v
                        && *b != v
                    {
                        out.extend(self.region_hint(at, use_at, id, *b, v, &region)?);
                    }
                }
                Some(Movement::Assemble(pieces)) => {
                    let whole = node.results[0];
                    if self.options.straight
                        && let Some((place, except)) = self.part_hint(at, id, v, pieces, depth)?
                    {
                        let (kind, over) = (Some(RemarkKind::AssembleInPlace), Some(whole));
                        let (target, bytes) = (Ok(HintTarget::At(place)), self.facts.bytes_of(whole));
                        out.push(Hint { target, kind, over, except, bytes });
                    }
                }
                _ => self.hints_through_view(at, id, v, depth, out)?,
            }
        }
        // What serves more bytes first; a part of a `cat` that holds the parts of the others too is the largest.
        out[from..].sort_by_key(|h| std::cmp::Reverse(h.bytes));
        Ok(())
    }

    /// Hints at the caller's memory for a value that the caller gets.
    fn caller_hints(&mut self, v: ValueId, ty: &Meta, out: &mut Vec<Hint>) -> Result<()> {
        let facts = self.facts;
        let Some(handed) = facts.handed(v).filter(|_| self.options.boundary) else { return Ok(()) };
        let (except, bytes) = (Vec::new(), facts.bytes_of(v));
        for &i in &handed.inputs {
            let input = facts.graph.inputs[i];
            let Some(place) = self.places.inputs.get(i).cloned().flatten() else { continue };
            if facts.ty(input)?.dtype == ty.dtype && place.layout.sizes == ty.layout.sizes {
                let (kind, over) = (Some(RemarkKind::WriteBack), Some(input));
                out.push(Hint { target: Ok(HintTarget::At(place)), kind, over, except: except.clone(), bytes });
            }
        }
        for &i in &handed.outputs {
            let target = match self.options.outputs_in_arena && !facts.boundary.body {
                true => Err(Reason::SwitchedOff),
                false => Ok(HintTarget::At(self.output_place(i, v)?)),
            };
            let kind = Some(RemarkKind::OutputInCaller);
            out.push(Hint { target, kind, over: None, except: except.clone(), bytes });
        }
        Ok(())
    }

    /// A hint at the region of a scatter's base, for the source. `None` where that memory does not exist yet, or the scatter is
    /// a kernel of its own. The hint holds if the scatter replaces the base, which is not read as a whole before that.
    fn region_hint(
        &mut self,
        at: usize,
        use_at: usize,
        id: NodeId,
        whole: ValueId,
        v: ValueId,
        rule: &ViewRule,
    ) -> Result<Option<Hint>> {
        let ty = self.facts.ty(v)?;
        let Some((base, use_at)) = self.placed_base(whole, use_at)? else { return Ok(None) };
        let Some(place) = self.places.find(base).cloned() else { return Ok(None) };
        if self.facts.ty(base)?.dtype != ty.dtype {
            return Ok(None);
        }
        // The kernel of a scatter into an overlapping region reads all of the base.
        let result = self.facts.ty(self.facts.graph.nodes[id].results[0])?;
        let declared = self.region_of(id, whole, rule, &result.layout)?;
        if declared.as_ref().is_some_and(|r| self_overlaps(r) != Some(false)) {
            return Ok(None);
        }
        // From now on the scatter alone may read the base.
        let next = self.places.next_use(base, at);
        let denied = if !self.options.straight || !self.options.scatter {
            Some(Reason::SwitchedOff)
        } else if !self.places.is_writable(place.buffer) {
            Some(Reason::CallerVisible)
        } else if self_overlaps(&place.layout) != Some(false) {
            Some(Reason::NotDense)
        } else if next == Some(at) {
            Some(Reason::PartialOverlap)
        } else if next != Some(use_at) {
            Some(Reason::StillRead { by: next.map(|u| self.facts.graph.order[u]) })
        } else if self.places.last_use[base] != use_at {
            Some(Reason::StillRead { by: self.reader(base, use_at) })
        } else {
            None
        };
        let region = match place.layout == result.layout {
            _ if denied.is_some() => None,
            true => declared,
            false => self.region_of(id, whole, rule, &place.layout)?,
        };
        let target = match (denied, region) {
            (Some(reason), _) => Err(reason),
            (None, None) => Err(Reason::NoStrides),
            (None, Some(region)) if region.sizes != ty.layout.sizes => Err(Reason::SizesDiffer),
            (None, Some(layout)) => Ok(HintTarget::At(Place { buffer: place.buffer, layout })),
        };
        if whole != base && target.is_err() {
            // When the source is made it may be another reason.
            return Ok(None);
        }
        let (kind, over) = (Some(RemarkKind::SourceInRegion), Some(base));
        let except = self.places.replaced_with(base);
        Ok(Some(Hint { target, kind, over, except, bytes: self.facts.bytes_of(base) }))
    }

    /// The placed value that a scatter's base will be made on, and the first scatter that reads it: the base itself, or the
    /// base of scatters to come whose sources are in their regions already. `None` where that is not known.
    fn placed_base(&self, base: ValueId, use_at: usize) -> Result<Option<(ValueId, usize)>> {
        let facts = self.facts;
        let (mut base, mut use_at, mut between) = (base, use_at, Vec::new());
        while self.places.find(base).is_none() {
            let Some(at) = facts.makers[base].filter(|_| between.len() < DEPTH) else { return Ok(None) };
            let id = facts.graph.order[at];
            let node = &facts.graph.nodes[id];
            let Some(Movement::Scatter { base: b, src, region }) = node.op.def().movement else { return Ok(None) };
            let (Some(Arg::Value(from)), Some(Arg::Value(src))) =
                (node.args.get(b as usize), node.args.get(src as usize))
            else {
                return Ok(None);
            };
            if self.places.uses[base][..] != [use_at]
                || facts.handed(base).is_some()
                || facts.known_type(*from) != facts.known_type(base)
            {
                return Ok(None);
            }
            between.push((id, *from, *src, region));
            (base, use_at) = (*from, at);
        }
        let place = self.places.get(base)?;
        for (id, from, src, rule) in between {
            let region = self.region_of(id, from, &rule, &place.layout)?;
            let made_there =
                |l: Layout| self.places.find(src).is_some_and(|p| p.buffer == place.buffer && p.layout.same_cells(&l));
            if !region.is_some_and(made_there) {
                return Ok(None);
            }
        }
        Ok(Some((base, use_at)))
    }

    /// Hints for the result of a view, or of a copy in the same order, as hints for its operand.
    fn hints_through_view(
        &mut self,
        at: usize,
        id: NodeId,
        v: ValueId,
        depth: usize,
        out: &mut Vec<Hint>,
    ) -> Result<()> {
        let facts: &GraphFacts<'_> = self.facts;
        let node = &facts.graph.nodes[id];
        let def = node.op.def();
        let &[w] = &node.results[..] else { return Ok(()) };
        let (Some(from), Some(to)) = (facts.known_type(v), facts.known_type(w)) else { return Ok(()) };
        if !self.options.views
            || !self.options.straight
            || from.dtype != to.dtype
            || from.layout.numel() != to.layout.numel()
        {
            return Ok(());
        }
        let same = matches!(def.movement, Some(Movement::Same));
        let rule = view_rule(node);
        if rule.is_none() && !same {
            return Ok(());
        }
        let base = rule.map_or(0, |(_, base, _)| base);
        if !matches!(node.args.get(base), Some(Arg::Value(a)) if *a == v) {
            return Ok(());
        }
        if def.strided {
            return self.hints_through_strides(at, (v, w), (from, to), depth, out);
        }
        let seen = match rule {
            None => Some(Layout::contiguous(&to.layout.sizes)),
            Some(_) => self.view_layout(id, v, 0, &Layout::contiguous(&from.layout.sizes))?,
        };
        let Some(seen) = seen else { return Ok(()) };
        let mut found = Vec::new();
        self.hints_of_view(at, v, w, depth + 1, &mut found)?;
        if same && from.layout.sizes != to.layout.sizes {
            // Nothing is copied where the elements are stored in the order of the copy.
            let (target, bytes) = (Ok(HintTarget::Fresh(default_layout(to))), facts.bytes_of(w));
            found.push(Hint { target, kind: None, over: None, except: Vec::new(), bytes });
        }
        for hint in found {
            let base = |l: &Layout| base_layout(l, &seen, &from.layout.sizes);
            let target = match &hint.target {
                Ok(HintTarget::At(p)) => {
                    base(&p.layout).map(|layout| Ok(HintTarget::At(Place { buffer: p.buffer, layout })))
                }
                Ok(HintTarget::Fresh(l)) => base(l).map(|l| Ok(HintTarget::Fresh(l))),
                Err(reason) => Some(Err(*reason)),
            };
            out.extend(target.map(|target| Hint { target, ..hint }));
        }
        Ok(())
    }

    /// Hints for the result of a view by strides, which shows all of its operand: a place that has the declared layout of
    /// the view is one for the operand in its own declared layout.
    fn hints_through_strides(
        &mut self,
        at: usize,
        (v, w): (ValueId, ValueId),
        (from, to): (&Meta, &Meta),
        depth: usize,
        out: &mut Vec<Hint>,
    ) -> Result<()> {
        let whole = |l: &Layout| l.offset == 0 && l.is_dense();
        if !whole(&from.layout) || !whole(&to.layout) {
            return Ok(());
        }
        let mut found = Vec::new();
        self.hints_of_view(at, v, w, depth + 1, &mut found)?;
        for hint in found {
            if let Ok(HintTarget::At(p)) = &hint.target
                && p.layout == to.layout
            {
                let place = Place { buffer: p.buffer, layout: from.layout.clone() };
                out.push(Hint { target: Ok(HintTarget::At(place)), ..hint });
            }
        }
        Ok(())
    }

    /// The part of an assembled result that is an operand of it. The first operand to ask reserves memory for the whole.
    fn part_hint(
        &mut self,
        at: usize,
        user: NodeId,
        v: ValueId,
        pieces: AssembleFn,
        depth: usize,
    ) -> Result<Option<(Place, Vec<ValueId>)>> {
        let facts = self.facts;
        let whole = facts.graph.nodes[user].results[0];
        if !self.hints.parts.contains_key(&user) {
            let mut parts: BTreeMap<ValueId, Option<Layout>> = BTreeMap::new();
            let want = facts.ty(whole)?;
            let operands: Vec<ValueId> = facts.graph.nodes[user].operands().collect();
            if operands.iter().all(|u| facts.known_type(*u).is_some_and(|t| t.dtype == want.dtype)) {
                let args = self.eager_args(user)?;
                let reserved = self.reserve(at, whole, want, depth)?;
                for piece in pieces(&Args(&args), &reserved.0.layout)? {
                    // An operand that occurs twice cannot be in both places.
                    let u = operands[piece.operand];
                    parts.entry(u).and_modify(|p| *p = None).or_insert(Some(piece.region));
                }
                self.hints.reserved.insert(whole, reserved);
            }
            self.hints.parts.insert(user, parts);
        }
        let Some((place, except)) = self.hints.reserved.get(&whole) else { return Ok(None) };
        let part = self.hints.parts[&user].get(&v).cloned().flatten();
        let sizes = &facts.ty(v)?.layout.sizes;
        let part = part.filter(|p| p.sizes == *sizes);
        Ok(part.map(|layout| (Place { buffer: place.buffer, layout }, except.clone())))
    }

    /// Memory for a value that is assembled later, with the values that may lose cells to it: no other value that is read
    /// from now on loses one.
    fn reserve(&mut self, at: usize, v: ValueId, ty: &Meta, depth: usize) -> Result<(Place, Vec<ValueId>)> {
        let mut hints = Vec::new();
        self.hints_of(at, v, depth + 1, &mut hints)?;
        let write = Write::moved(at, self.facts.graph.order[at]);
        let mut layout = None;
        for hint in hints {
            match hint.target {
                Ok(HintTarget::At(place)) => {
                    if self.may_write(&write, &place, ty, &hint.except)?.0 == Reason::Taken {
                        return Ok((place, hint.except));
                    }
                }
                Ok(HintTarget::Fresh(fresh)) => {
                    layout.get_or_insert(fresh);
                }
                Err(_) => {}
            }
        }
        let layout = self.facts.layouts[v].clone().or(layout).unwrap_or_else(|| default_layout(ty));
        Ok((self.places.fresh(layout, ty.dtype), Vec::new()))
    }

    /// The place of a result that is moved into it, piece by piece, while the node's operands are read.
    pub(super) fn moved_place(&mut self, write: &Write<'_>, v: ValueId) -> Result<Place> {
        let ty = self.facts.ty(v)?;
        Ok(match self.preferred(write, v, ty)? {
            HintTarget::At(place) => place,
            HintTarget::Fresh(layout) => self.places.fresh(layout, ty.dtype),
        })
    }

    /// Whether a collective reads a value or one of its views.
    fn is_exchanged(&self, v: ValueId, depth: usize) -> bool {
        let graph = self.facts.graph;
        self.facts.uses[v].iter().any(|at| {
            let node = &graph.nodes[graph.order[*at]];
            matches!(node.op.def().kernel, Kernel::Collective(_))
                || view_rule(node).is_some()
                    && (depth >= DEPTH || node.results.iter().any(|r| self.is_exchanged(*r, depth + 1)))
        })
    }

    /// The best hinted place that may be written now, else the hinted layout of a new buffer.
    pub(super) fn preferred(&mut self, write: &Write<'_>, v: ValueId, ty: &Meta) -> Result<HintTarget> {
        let bytes = self.facts.bytes_of(v);
        let mut layout = None;
        // An operator that sets strides puts its result into memory of its own, in the eager layout.
        let eager = write.result.is_some() && self.facts.graph.nodes[write.id].op.def().strided;
        let mut hints = if eager || self.revision.avoids(v) { Vec::new() } else { self.hints(write.at, v)? };
        // An operand of an exchange stays until the wait, and could not make way for a source.
        if hints.iter().any(|h| !h.except.is_empty()) && self.is_exchanged(v, 0) {
            hints.retain(|h| h.except.is_empty());
        }
        for hint in hints {
            let (reason, on, target) = match &hint.target {
                Ok(HintTarget::Fresh(fresh)) => {
                    layout.get_or_insert_with(|| fresh.clone());
                    continue;
                }
                Ok(HintTarget::At(place)) => {
                    let (reason, on) = self.may_write(write, place, ty, &hint.except)?;
                    (reason, on, Some(place.clone()))
                }
                Err(reason) => (*reason, None, None),
            };
            // That a part is in its place is a remark of the whole.
            if let Some(kind) = hint.kind
                && !(kind == RemarkKind::AssembleInPlace && reason == Reason::Taken)
            {
                self.remark(write.id, kind, reason, bytes, hint.over);
            }
            let Some(place) = target else { continue };
            if reason == Reason::Taken {
                self.revision.chose(v, if hint.kind.is_some() { bytes } else { 0 });
                if !hint.except.is_empty() {
                    self.places.replaced.set(v, hint.except);
                }
                if on.is_some() {
                    self.remark(write.id, RemarkKind::ReuseOperand, Reason::Taken, bytes, on);
                }
                return Ok(HintTarget::At(place));
            }
            if hint.kind.is_some() {
                self.revision.regret(bytes, &self.places);
            }
        }
        let own = self.facts.layouts[v].clone();
        Ok(HintTarget::Fresh(own.or(layout).unwrap_or_else(|| default_layout(ty))))
    }
}

/// The layout of a value of these sizes whose view has the layout `target`, where `seen` is the view's layout on a row-major
/// value. `None` if no strides express it.
pub(super) fn base_layout(target: &Layout, seen: &Layout, sizes: &[i64]) -> Option<Layout> {
    // The view's dimensions, in the order of the value's elements.
    let mut order: Vec<usize> = (0..seen.rank()).collect();
    let key = |d: usize| (seen.sizes[d] <= 1, std::cmp::Reverse(seen.strides[d]));
    sort_indices(&mut order, &|a, b| key(a).cmp(&key(b)));
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

    /// `view(base_layout(target)) == target`, for permutations and splits.
    #[test]
    fn a_base_is_laid_out_for_its_view() {
        let value = [2, 12, 5];
        let rows = Layout::contiguous(&value);
        let seen = rows.view(&[2, 3, 4, 5]).and_then(|l| l.permute(&[0, 2, 1, 3]).ok()).expect("a view");
        let target = Layout::strided(&seen.sizes, &[1000, 10, 100, 1], 7);
        assert!(base_layout(&target, &seen, &value).is_none(), "3 and 4 do not merge: {target:?}");
        let target = Layout::strided(&seen.sizes, &[1000, 10, 40, 1], 7);
        let base = base_layout(&target, &seen, &value).expect("merges");
        assert_eq!(base, Layout::strided(&value, &[1000, 10, 1], 7));
        let again = base.view(&[2, 3, 4, 5]).and_then(|l| l.permute(&[0, 2, 1, 3]).ok()).expect("a view");
        assert!(again.same_cells(&target));
        // A part of the value is no whole.
        let half = rows.slice(1, Some(&0), Some(&6), &1).expect("a slice");
        assert!(base_layout(&half, &half, &value).is_none());
    }
}
