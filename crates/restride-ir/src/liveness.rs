//! Which bytes of the arena buffers hold something still to be read, and when: the lives that a plan keeps apart.
//!
//! A buffer need not live as a whole. A `cat` that is built part by part is there as far as it is built, a buffer of which only a
//! slice is read again is no more than that slice, and what is overwritten is not there between its last reading and that.
//! Everything is counted in whole blocks of [`ARENA_ALIGN`], and a place as all that lies between its first and its last cell,
//! so that what is left is never too little.

use crate::{ARENA_ALIGN, BufferId, BufferKind, Graph, Id, Place, Placement, Step, Table, ValueId, aligned};
use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

/// Bytes of a buffer and the steps during which they are needed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Live {
    /// From the step that writes them first to the one that reads them last.
    pub steps: RangeInclusive<usize>,
    /// Counted from the buffer's start, in whole blocks.
    pub bytes: Range<i64>,
}

/// What a step does to bytes of a buffer.
#[derive(Clone, Debug)]
struct ByteAccess {
    step: usize,
    /// All that may be touched.
    reach: Range<i64>,
    /// What is surely written, all of it.
    covered: Option<Range<i64>>,
    write: bool,
}

/// When what bytes of each arena buffer are needed: by step, then by offset. No two overlap; buffers that no step touches
/// have none.
pub fn lives(graph: &Graph, placement: &Placement) -> Table<BufferId, Vec<Live>> {
    let mut accesses: Vec<Vec<ByteAccess>> = vec![Vec::new(); placement.buffers.len()];
    for (step, s) in placement.steps.iter().enumerate() {
        let mut touch = |v: ValueId, place: &Place, write: bool| {
            let Some(own) = accesses.get_mut(place.buffer.index()) else { return };
            let element = graph.values.get(v).and_then(|v| v.ty.tensor()).map_or(1, |t| t.dtype.size() as i64);
            own.extend(access(step, place, element, placement.buffers[place.buffer].bytes, write));
        };
        match s {
            Step::Run { node, reads, writes } => {
                let Some(n) = graph.nodes.get(*node) else { continue };
                n.operands().zip(reads).for_each(|(v, p)| p.iter().for_each(|p| touch(v, p, false)));
                n.results.iter().zip(writes).for_each(|(v, p)| p.iter().for_each(|p| touch(*v, p, true)));
                if let Some(&b) = placement.scratch.get(node)
                    && let Some(own) = accesses.get_mut(b.index())
                {
                    let all = 0..aligned(placement.buffers[b].bytes);
                    own.push(ByteAccess { step, reach: all.clone(), covered: Some(all), write: true });
                }
            }
            Step::Move { value, from, to } => {
                touch(*value, from, false);
                touch(*value, to, true);
            }
            Step::Free { .. } => {}
        }
    }
    let mut out = Table::new();
    for (id, buffer) in placement.buffers.iter() {
        if buffer.kind == BufferKind::Arena && !accesses[id.index()].is_empty() {
            out.set(id, of_buffer(&accesses[id.index()]));
        }
    }
    out
}

/// What a step does at a place of a buffer.
fn access(step: usize, place: &Place, element: i64, bytes: i64, write: bool) -> Option<ByteAccess> {
    let cells = place.layout.cell_range();
    let range = cells.start.saturating_mul(element).max(0)..cells.end.saturating_mul(element).min(bytes);
    if range.is_empty() {
        return None;
    }
    let down = |n: i64| n - n.rem_euclid(ARENA_ALIGN);
    let reach = down(range.start)..aligned(range.end);
    // The last block is all there is of it.
    let end = if range.end == bytes { aligned(bytes) } else { down(range.end) };
    let covered = aligned(range.start)..end;
    let covered = (write && place.layout.is_dense() && !covered.is_empty()).then_some(covered);
    Some(ByteAccess { step, reach, covered, write })
}

/// From the last step to the first, with what is needed after each, and until when.
fn of_buffer(accesses: &[ByteAccess]) -> Vec<Live> {
    // What each write is the first to write.
    let mut there = Ranges::default();
    let fresh: Vec<Vec<Range<i64>>> =
        accesses.iter().map(|a| if a.write { there.insert(&a.reach) } else { Vec::new() }).collect();
    let mut needed = Ranges::default();
    let mut until: BTreeMap<i64, (i64, usize)> = BTreeMap::new();
    let mut out = Vec::new();
    let mut end = accesses.len();
    while end > 0 {
        let step = accesses[end - 1].step;
        let start = accesses[..end].partition_point(|a| a.step < step);
        let own = start..end;
        end = start;
        let need = |range: &Range<i64>, needed: &mut Ranges, until: &mut BTreeMap<i64, (i64, usize)>| {
            let gaps = needed.insert(range);
            until.extend(gaps.iter().map(|gap| (gap.start, (gap.end, step))));
            gaps
        };
        let mut unread = Vec::new();
        for a in accesses[own.clone()].iter().filter(|a| a.write) {
            unread.extend(need(&a.reach, &mut needed, &mut until));
        }
        // What is written here, as a whole or for nobody to read, was not needed before, but for what is read here.
        let mut read = Ranges::default();
        for a in accesses[own.clone()].iter().filter(|a| !a.write) {
            read.insert(&a.reach);
        }
        let covered = accesses[own.clone()].iter().filter_map(|a| a.covered.clone());
        let gone =
            covered.chain(unread).flat_map(|c| read.missing(&c)).chain(fresh[own.clone()].iter().flatten().cloned());
        for range in gone.collect::<Vec<_>>() {
            needed.remove(&range);
            take(&mut until, &range, |bytes, last| out.push(Live { steps: step..=last, bytes }));
        }
        for a in accesses[own].iter().filter(|a| !a.write) {
            need(&a.reach, &mut needed, &mut until);
        }
    }
    // What is left was read and never written: there was nothing in it.
    out.sort_by_key(|l| (*l.steps.start(), l.bytes.start));
    joined(out)
}

/// Puts together what lies side by side and is needed at the same steps.
fn joined(lives: Vec<Live>) -> Vec<Live> {
    let mut out: Vec<Live> = Vec::with_capacity(lives.len());
    for live in lives {
        match out.last_mut() {
            Some(last) if last.steps == live.steps && last.bytes.end == live.bytes.start => {
                last.bytes.end = live.bytes.end;
            }
            _ => out.push(live),
        }
    }
    out
}

/// Takes a range out of what is needed, and tells of each piece until when it was.
fn take(until: &mut BTreeMap<i64, (i64, usize)>, range: &Range<i64>, mut f: impl FnMut(Range<i64>, usize)) {
    let first = until.range(..range.start).next_back().filter(|(_, x)| x.0 > range.start).map(|(k, _)| *k);
    let inside: Vec<i64> = first.into_iter().chain(until.range(range.clone()).map(|(k, _)| *k)).collect();
    for start in inside {
        let Some((end, last)) = until.remove(&start) else { continue };
        if start < range.start {
            until.insert(start, (range.start, last));
        }
        if end > range.end {
            until.insert(range.end, (end, last));
        }
        f(start.max(range.start)..end.min(range.end), last);
    }
}

/// A set of bytes, as ranges of which no two touch.
#[derive(Clone, Default, Debug)]
struct Ranges(BTreeMap<i64, i64>);

impl Ranges {
    /// What of a range is not in the set.
    fn missing(&self, range: &Range<i64>) -> Vec<Range<i64>> {
        let mut at = range.start;
        let mut out = Vec::new();
        let before = self.0.range(..=range.start).next_back();
        let inside = self.0.range(range.start + 1..range.end.max(range.start + 1));
        for (&from, &to) in before.into_iter().chain(inside) {
            if from > at {
                out.push(at..from.min(range.end));
            }
            at = at.max(to);
        }
        if at < range.end {
            out.push(at..range.end);
        }
        out
    }

    /// Adds a range; gives what of it was not there.
    fn insert(&mut self, range: &Range<i64>) -> Vec<Range<i64>> {
        let missing = self.missing(range);
        if !missing.is_empty() {
            let (mut from, mut to) = (range.start, range.end);
            let touching: Vec<i64> =
                self.0.range(..=to).rev().take_while(|(_, end)| **end >= from).map(|(k, _)| *k).collect();
            for start in touching {
                if let Some(end) = self.0.remove(&start) {
                    (from, to) = (from.min(start), to.max(end));
                }
            }
            self.0.insert(from, to);
        }
        missing
    }

    fn remove(&mut self, range: &Range<i64>) {
        let inside: Vec<i64> =
            self.0.range(..range.end).rev().take_while(|(_, end)| **end > range.start).map(|(k, _)| *k).collect();
        for start in inside {
            let Some(end) = self.0.remove(&start) else { continue };
            if start < range.start {
                self.0.insert(start, range.start);
            }
            if end > range.end {
                self.0.insert(range.end, end);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is needed of each block, block by block and step by step.
    fn by_block(accesses: &[ByteAccess], blocks: i64, steps: usize) -> Vec<Vec<bool>> {
        let mut out = vec![vec![false; steps]; blocks as usize];
        for block in 0..blocks {
            let at = block * ARENA_ALIGN;
            let touches = |r: &Range<i64>| r.contains(&at);
            let own: Vec<&ByteAccess> = accesses.iter().filter(|a| touches(&a.reach)).collect();
            // The steps of the present content, from its first write on.
            let mut since: Option<usize> = None;
            for step in 0..steps {
                let here = || own.iter().filter(|a| a.step == step);
                let read = here().any(|a| !a.write);
                if read && let Some(since) = since {
                    out[block as usize][since..=step].fill(true);
                }
                if here().any(|a| a.write) {
                    let anew = here().any(|a| a.covered.as_ref().is_some_and(touches)) && !read;
                    since = if anew { Some(step) } else { since.or(Some(step)) };
                    out[block as usize][step] = true;
                }
            }
        }
        out
    }

    #[test]
    fn lives_are_those_of_each_block() {
        let mut state = 5u64;
        let mut below = |n: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % n
        };
        let mut several = 0;
        for _ in 0..2000 {
            let (blocks, steps) = (6, 8);
            let mut accesses = Vec::new();
            for step in 0..steps {
                for _ in 0..below(3) {
                    let from = below(blocks) as i64;
                    let to = from + 1 + below(blocks - from as usize) as i64;
                    let reach = from * ARENA_ALIGN..to * ARENA_ALIGN;
                    let write = below(2) == 0;
                    let covered = (write && below(2) == 0).then(|| reach.clone());
                    accesses.push(ByteAccess { step, reach, covered, write });
                }
            }
            let want = by_block(&accesses, blocks as i64, steps);
            let mut have = vec![vec![false; steps]; blocks];
            let lives = of_buffer(&accesses);
            several += usize::from(lives.len() > 2);
            for live in lives {
                for block in live.bytes.start / ARENA_ALIGN..live.bytes.end / ARENA_ALIGN {
                    for step in live.steps.clone() {
                        assert!(!std::mem::replace(&mut have[block as usize][step], true), "twice: {accesses:?}");
                    }
                }
            }
            assert_eq!(have, want, "{accesses:?}");
        }
        assert!(several > 500, "{several}");
    }
}
