//! Liveness of the arena buffers: bytes and steps that a plan must keep apart.
//!
//! A buffer need not be live as a whole. A `cat` that is built part by part is live as far as it is built; a buffer of
//! which a slice is read last is live in that slice; overwritten bytes are free from their last read until the write.
//! Liveness is counted in blocks of [`ARENA_ALIGN`], and a place from its first to its last cell, so it is never too small.

use crate::{ARENA_ALIGN, BufferId, BufferKind, Graph, Id, Place, Placement, Step, Table, ValueId, aligned};
use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

/// Bytes of a buffer, and the steps that need them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Live {
    /// From the step of the first write to the step of the last read.
    pub steps: RangeInclusive<usize>,
    /// Blocks, from the buffer's start.
    pub bytes: Range<i64>,
}

/// A read or write of bytes of a buffer.
#[derive(Clone, Debug)]
struct ByteAccess {
    step: usize,
    /// Bytes that the step may touch.
    reach: Range<i64>,
    /// Bytes that the step surely writes.
    covered: Option<Range<i64>>,
    write: bool,
}

/// Liveness of each arena buffer, by step, then by offset. Entries do not overlap; untouched buffers have none.
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

/// The access of a step to a place.
fn access(step: usize, place: &Place, element: i64, bytes: i64, write: bool) -> Option<ByteAccess> {
    let cells = place.layout.cell_range();
    let range = cells.start.saturating_mul(element).max(0)..cells.end.saturating_mul(element).min(bytes);
    if range.is_empty() {
        return None;
    }
    let down = |n: i64| n - n.rem_euclid(ARENA_ALIGN);
    let reach = down(range.start)..aligned(range.end);
    // The buffer ends in the last block.
    let end = if range.end == bytes { aligned(bytes) } else { down(range.end) };
    let covered = aligned(range.start)..end;
    let covered = (write && place.layout.is_dense() && !covered.is_empty()).then_some(covered);
    Some(ByteAccess { step, reach, covered, write })
}

/// Walks from the last step to the first, with the bytes needed after each step and their last reader.
fn of_buffer(accesses: &[ByteAccess]) -> Vec<Live> {
    // Bytes that each write is the first to write.
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
        // Bytes that this step writes, fully or without a later reader, are free before it, unless this step reads them.
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
    // The rest is read and never written: its content is undefined.
    out.sort_by_key(|l| (*l.steps.start(), l.bytes.start));
    joined(out)
}

/// Merges adjacent bytes that the same steps need.
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

/// Removes a range from the needed bytes; `f` gets each removed piece with its last reader.
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

/// A set of bytes, as disjoint ranges that do not touch.
#[derive(Clone, Default, Debug)]
struct Ranges(BTreeMap<i64, i64>);

impl Ranges {
    /// The parts of a range outside of the set.
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

    /// Adds a range and returns its parts that were missing.
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
