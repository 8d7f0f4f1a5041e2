//! The first wrong element of a value, found by bisection of boxes instead of a scan.

use crate::facts::Fact;
use crate::placement::PlacementWalk;
use restride_ir::{Arg, Args, Layout, Movement, NodeId, Place, ValueId};
use restride_tensor::{Overlap, overlap_bytes};

/// Index of the first element, in row-major order, for which `bad` holds. `bad` takes boxes, and holds for a box if it
/// holds for one of its elements. `None` if it holds for no element, or only for boxes where it could not decide.
pub(crate) fn first(layout: &Layout, bad: impl Fn(&Layout) -> bool) -> Option<Vec<i64>> {
    if layout.sizes.contains(&0) || !bad(layout) {
        return None;
    }
    let mut rest = layout.clone();
    let mut index = Vec::with_capacity(rest.rank());
    for d in 0..rest.rank() {
        // No element before `from` is bad; one in `from..to` is.
        let (mut from, mut to) = (0, rest.sizes[d]);
        let part = |from: i64, to: i64| {
            let mut part = rest.clone();
            part.offset = part.offset.saturating_add(from.saturating_mul(part.strides[d]));
            part.sizes[d] = to - from;
            part
        };
        while to - from > 1 {
            let half = from + (to - from) / 2;
            if bad(&part(from, half)) { to = half } else { from = half }
        }
        rest = part(from, to);
        index.push(from);
    }
    bad(&rest).then_some(index)
}

/// The first element that a layout has in another cell than a fact, or that the fact has lost.
fn differs(fact: &Fact, layout: &Layout) -> Option<Vec<i64>> {
    let hole = first(layout, |part| !fact.holes_in(part, fact.element).is_empty());
    let start = vec![0; layout.rank()];
    let other = if fact.layout.offset != layout.offset {
        Some(start)
    } else {
        let apart = |d: &usize| layout.sizes[*d] > 1 && layout.strides[*d] != fact.layout.strides[*d];
        (0..layout.rank()).rev().find(apart).map(|d| {
            let mut index = start;
            index[d] = 1;
            index
        })
    };
    match (hole, other) {
        (Some(hole), Some(other)) => Some(hole.min(other)),
        (hole, other) => hole.or(other),
    }
}

/// No fact is known.
pub(crate) struct Unknown;

impl PlacementWalk<'_> {
    /// The first element of a value that a place does not hold, by all facts of the value in that buffer; `None` if the
    /// place holds all. An error if no fact is known of a value that is assembled from others: some of them may be in place.
    pub(crate) fn not_held(&self, v: ValueId, place: &Place) -> Result<Option<Vec<i64>>, Unknown> {
        let facts = self.memory.of(v).into_iter().filter(|(buffer, _)| *buffer == place.buffer);
        let alike = facts.filter(|(_, f)| f.layout.rank() == place.layout.rank());
        let mut known = alike.map(|(_, f)| differs(&f, &place.layout)).peekable();
        if known.peek().is_none() {
            let whole = vec![0; place.layout.rank()];
            return if self.put_together[v] { Err(Unknown) } else { Ok(Some(whole)) };
        }
        // One fact that has an element suffices for it.
        Ok(known.try_fold(Vec::new(), |most, index| index.map(|index| most.max(index))))
    }

    /// The first element of a scatter's or `cat`'s result that is not in the result's place, and that place; `None` if
    /// unknown.
    pub(crate) fn gap(&self, id: NodeId, r: ValueId) -> Option<(Place, Vec<i64>)> {
        let node = &self.graph.nodes[id];
        let place = self.placement.places[r].as_ref().or(self.seen_at[r].first().copied())?;
        let meta = self.metas[r].as_ref().filter(|m| m.layout.sizes == place.layout.sizes)?;
        // First missing element of an operand, by its number in the whole.
        let rows = Layout::contiguous(&meta.layout.sizes);
        let in_part = |v: ValueId, at: &Layout, of: &Layout| {
            let place = Place { buffer: place.buffer, layout: at.clone() };
            let index = if at.sizes.contains(&0) { None } else { self.not_held(v, &place).ok()? };
            let Some(index) = index else { return Some(None) };
            let number = index.iter().zip(&of.strides).fold(of.offset, |n, (i, stride)| n + i * stride);
            let index = rows.strides.iter().zip(&rows.sizes).map(|(stride, size)| number / stride % size);
            Some(Some(index.collect::<Vec<i64>>()))
        };
        let element = match &node.op.def().movement {
            Some(Movement::Assemble(pieces)) => {
                let args = self.args(node, None).ok()?;
                let operands: Vec<ValueId> = node.operands().collect();
                let [at, of] = [&place.layout, &rows].map(|l| pieces(&Args(&args), l).ok());
                let missing = |(at, of): (restride_ir::AssemblyPart, restride_ir::AssemblyPart)| {
                    in_part(*operands.get(at.operand)?, &at.region, &of.region)
                };
                let all: Option<Vec<_>> = at?.into_iter().zip(of?).map(missing).collect();
                all?.into_iter().flatten().min()?
            }
            Some(Movement::Scatter { base, src, region }) => {
                let (Some(Arg::Value(b)), Some(Arg::Value(s))) =
                    (node.args.get(*base as usize), node.args.get(*src as usize))
                else {
                    return None;
                };
                let part = |l: &Layout| self.views_at(node, region, *base as usize, l).ok()??.into_iter().next();
                let (at, of) = (part(&place.layout)?.layout, part(&rows)?.layout);
                let size = meta.dtype.size();
                let meets = |part: &Layout| overlap_bytes(part, size, &of, size);
                let beside = |part: &Layout| !matches!(meets(part), Overlap::Same | Overlap::Inside);
                // The base's elements in the region do not count.
                let of_base = match (first(&rows, beside), in_part(*b, &place.layout, &rows)?) {
                    (None, _) | (_, None) => None,
                    (Some(outside), Some(index)) if index <= outside => Some(outside),
                    (_, Some(index)) => {
                        let number = index.iter().zip(&rows.strides).map(|(i, stride)| i * stride).sum();
                        if meets(&Layout::strided(&[], &[], number)) != Overlap::Disjoint {
                            return None;
                        }
                        Some(index)
                    }
                };
                [of_base, in_part(*s, &at, &of)?].into_iter().flatten().min()?
            }
            _ => return None,
        };
        Some((place.clone(), element))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use restride_tensor::{Overlap, overlap_bytes};

    /// Against a scan.
    #[test]
    fn first_as_one_by_one() {
        let mut below = crate::draws(7);
        let mut found = 0;
        for _ in 0..500 {
            let mut layout = || {
                let sizes: Vec<i64> = (0..3).map(|_| 1 + below(4)).collect();
                let strides: Vec<i64> = (0..3).map(|_| below(6)).collect();
                Layout::strided(&sizes, &strides, below(20))
            };
            let (a, b) = (layout(), layout());
            let index = first(&a, |part| overlap_bytes(part, 4, &b, 4) != Overlap::Disjoint);
            let cells = b.cells();
            let k = a.cells().iter().position(|c| cells.contains(c));
            let number = |i: &Vec<i64>| ((i[0] * a.sizes[1] + i[1]) * a.sizes[2] + i[2]) as usize;
            assert_eq!(index.as_ref().map(number), k, "{a} {b}");
            found += usize::from(k.is_some_and(|k| k > 0));
        }
        assert!(found > 50, "{found}");
    }
}
