//! The plan checker walks over the steps and knows the buffer that wrote each byte of the arena last.
//!
//! Buffers may share bytes while no step reads overwritten bytes. A write takes the bytes that it may touch from the
//! buffers that wrote them, which lose these bytes until they write all of them anew. A read of lost bytes is a fault. A
//! place counts from its first to its last cell, so no wrong plan is accepted.

use crate::interval_map::IntervalMap;
use crate::well_formed::MOST as MOST_BYTES;
use crate::{Fault, FaultKind};
use restride_ir::{
    ARENA_ALIGN, BufferId, BufferKind, Graph, GraphId, Id, Place, Placement, Plan, Program, Step, ValueId, aligned,
};
use std::ops::Range;

/// Largest number of faults that are listed.
const MOST: usize = 100;

/// Checks the offsets of a placement's arena buffers, and those of its bodies.
///
/// # Errors
/// The faults, at most a hundred for each arena.
pub fn plan(program: &Program, placement: &Placement, plan: &Plan) -> Result<(), Vec<Fault>> {
    let mut faults = Vec::new();
    check(program, program.main, placement, plan, &mut faults);
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

fn check(program: &Program, id: GraphId, placement: &Placement, plan: &Plan, faults: &mut Vec<Fault>) {
    let mut own = Vec::new();
    let mut fault = |kind, step, what: String| {
        let graph = (id != program.main).then_some(id);
        if own.len() < MOST {
            own.push(Fault { step, ..Fault::new(kind, graph, what) });
        }
    };
    match program.graphs.get(id) {
        Some(graph) => arena(graph, placement, plan, &mut fault),
        None => fault(FaultKind::Malformed, None, "a body that is not in the program".into()),
    }
    faults.append(&mut own);
    for (id, nested) in &placement.nested {
        check(program, *id, &nested.placement, &nested.plan, faults);
    }
}

fn arena(graph: &Graph, placement: &Placement, plan: &Plan, fault: &mut impl FnMut(FaultKind, Option<usize>, String)) {
    let mut first: Vec<Option<usize>> = vec![None; placement.buffers.len()];
    for (at, step) in placement.steps.iter().enumerate() {
        for buffer in placement.touched(step) {
            match first.get_mut(buffer.index()) {
                Some(first) => *first = first.or(Some(at)),
                None => fault(FaultKind::Malformed, Some(at), format!("the placement has no {buffer}")),
            }
        }
    }
    let mut offsets: Vec<Option<i64>> = vec![None; placement.buffers.len()];
    for (id, buffer) in placement.buffers.iter() {
        let offset = plan.offsets[id];
        if buffer.kind != BufferKind::Arena {
            if offset.is_some() {
                fault(FaultKind::Malformed, None, format!("{id} has an offset and is not in the arena"));
            }
            continue;
        }
        let Some(start) = first[id.index()] else { continue };
        let Some(offset) = offset else {
            fault(FaultKind::Malformed, Some(start), format!("{id} has no offset"));
            continue;
        };
        if offset < 0 || i128::from(offset) + i128::from(buffer.bytes) > i128::from(plan.arena_bytes) {
            let what = format!("{id} of {} bytes at {offset} leaves the arena of {}", buffer.bytes, plan.arena_bytes);
            fault(FaultKind::Outside, Some(start), what);
            continue;
        }
        if offset % ARENA_ALIGN != 0 || plan.align > ARENA_ALIGN && offset % plan.align != 0 {
            fault(FaultKind::Outside, Some(start), format!("{id} at {offset} is not aligned"));
        }
        offsets[id.index()] = Some(offset);
    }
    if placement.buffers.iter().any(|(_, b)| !(0..=MOST_BYTES).contains(&b.bytes)) {
        return fault(FaultKind::Malformed, None, "a buffer has a number of bytes that no memory has".into());
    }
    let mut walk = PlanWalk::new(placement, offsets);
    for (at, step) in placement.steps.iter().enumerate() {
        walk.step(graph, at, step, fault);
    }
    claims(plan, walk.most(), fault);
    if !plan.memories.is_empty() {
        spaces(graph, placement, plan, &first, fault);
    }
}

/// Checks the memories of the arena: they are adjacent, none exceeds its capacity, every used buffer is in one of them as a
/// whole, pinned values are in theirs, and the traffic is that of the steps.
fn spaces(
    graph: &Graph,
    placement: &Placement,
    plan: &Plan,
    used: &[Option<usize>],
    fault: &mut impl FnMut(FaultKind, Option<usize>, String),
) {
    let mut end = 0i128;
    for m in &plan.memories {
        let (start, bytes) = (i128::from(m.start), i128::from(m.bytes));
        if start < end || bytes < 0 || start + bytes > i128::from(plan.arena_bytes) {
            let what = format!("memory {} of {bytes} bytes at {start} meets another one or leaves the arena", m.name);
            fault(FaultKind::Outside, None, what);
        }
        if let Some(capacity) = m.capacity.filter(|c| m.bytes > *c) {
            fault(FaultKind::Outside, None, format!("memory {} holds {bytes} bytes of {capacity}", m.name));
        }
        end = end.max(start + bytes);
    }
    let space_of = |id: BufferId| {
        let (start, bytes) = (i128::from(plan.offsets[id]?), i128::from(placement.buffers.get(id)?.bytes));
        plan.memories.iter().position(|m| {
            let (from, to) = (i128::from(m.start), i128::from(m.start) + i128::from(m.bytes));
            from <= start && start + bytes <= to
        })
    };
    for (id, buffer) in placement.buffers.iter() {
        let first = used.get(id.index()).copied().flatten();
        if buffer.kind == BufferKind::Arena && buffer.bytes > 0 && first.is_some() && space_of(id).is_none() {
            fault(FaultKind::Outside, first, format!("{id} is in no memory as a whole"));
        }
    }
    for (k, m) in plan.memories.iter().enumerate() {
        for v in &m.pinned {
            let place = placement.places[*v].as_ref();
            if place.is_none_or(|p| space_of(p.buffer) != Some(k)) {
                fault(FaultKind::Outside, None, format!("{v} is pinned to memory {} and is not in it", m.name));
            }
        }
    }
    let mut traffic = vec![0i128; plan.memories.len()];
    let mut moved = |buffer: BufferId, bytes: i128| {
        if placement.buffers.get(buffer).is_some_and(|b| b.kind == BufferKind::Arena && b.bytes > 0)
            && let Some(k) = space_of(buffer)
        {
            traffic[k] += bytes;
        }
    };
    let bytes = |v: ValueId, place: &Place| {
        let element = graph.values.get(v).and_then(|v| v.ty.tensor()).map_or(1, |t| t.dtype.size() as i128);
        i128::from(place.layout.numel()) * element
    };
    for step in &placement.steps {
        match step {
            Step::Run { node, reads, writes } => {
                let Some(n) = graph.nodes.get(*node) else { continue };
                let operands = n.operands().zip(reads).chain(n.results.iter().copied().zip(writes));
                operands.for_each(|(v, p)| p.iter().for_each(|p| moved(p.buffer, bytes(v, p))));
                if let Some(&scratch) = placement.scratch.get(node)
                    && let Some(buffer) = placement.buffers.get(scratch)
                {
                    moved(scratch, i128::from(buffer.bytes));
                }
            }
            Step::Move { value, from, to } => {
                moved(from.buffer, bytes(*value, from));
                moved(to.buffer, bytes(*value, to));
            }
            Step::Free { .. } => {}
        }
    }
    for (m, found) in plan.memories.iter().zip(&traffic) {
        if i128::from(m.traffic) != *found {
            let what = format!("memory {} is said to have traffic of {} bytes, and has {found}", m.name, m.traffic);
            fault(FaultKind::Claim, None, what);
        }
    }
    // The claim that no other choice spills less is not checked.
    let spilled: i128 = traffic.iter().skip(1).sum();
    if i128::from(plan.spilled_at_least) > spilled {
        let what =
            format!("{spilled} bytes of traffic are spilled, and {} are called the least", plan.spilled_at_least);
        fault(FaultKind::Claim, None, what);
    }
}

fn claims(plan: &Plan, bound: i128, fault: &mut impl FnMut(FaultKind, Option<usize>, String)) {
    if i128::from(plan.lower_bound_bytes) > bound {
        let what = format!("the lower bound is {}, and {bound} bytes live at once", plan.lower_bound_bytes);
        fault(FaultKind::Claim, None, what);
    }
    // The claim that a search found no smaller plan is not checked.
    let claimed = plan.at_least_bytes;
    if claimed < plan.lower_bound_bytes || claimed > plan.arena_bytes {
        let what = format!("an arena of {} is called at least {claimed}", plan.arena_bytes);
        fault(FaultKind::Claim, None, what);
    }
    if plan.optimal && plan.arena_bytes > claimed {
        let what = format!("an arena of {} is called the smallest, and {claimed} could do", plan.arena_bytes);
        fault(FaultKind::Claim, None, what);
    }
}

/// A read or write of a buffer in the arena, in bytes of the buffer.
struct StepAccess {
    buffer: BufferId,
    range: Range<i64>,
    write: bool,
    /// Whether every byte of the range is accessed.
    whole: bool,
}

struct PlanWalk<'a> {
    placement: &'a Placement,
    /// Walk over the steps, for buffers inside of the arena.
    offsets: Vec<Option<i64>>,
    /// Last writer of each byte of the arena.
    owner: IntervalMap<BufferId>,
    /// For each buffer, the bytes of the arena that others have overwritten.
    lost: Vec<IntervalMap<()>>,
    /// For each buffer, the step up to which its blocks count as needed.
    counted: Vec<IntervalMap<usize>>,
    /// Blocks that are needed from a step on, or no longer.
    changes: Vec<(usize, i128)>,
}

impl<'a> PlanWalk<'a> {
    fn new(placement: &'a Placement, offsets: Vec<Option<i64>>) -> PlanWalk<'a> {
        let buffers = placement.buffers.len();
        PlanWalk {
            placement,
            offsets,
            owner: IntervalMap::default(),
            lost: vec![IntervalMap::default(); buffers],
            counted: vec![IntervalMap::default(); buffers],
            changes: Vec::new(),
        }
    }

    fn accesses(&self, graph: &Graph, step: &Step) -> Vec<StepAccess> {
        let mut out = Vec::new();
        let mut add = |v: ValueId, place: &Place, write: bool| {
            let Some(buffer) = self.placement.buffers.get(place.buffer) else { return };
            let element = graph.values.get(v).and_then(|v| v.ty.tensor()).map_or(1, |t| t.dtype.size() as i64);
            let cells = place.layout.cell_range();
            let range = cells.start.saturating_mul(element).max(0)..cells.end.saturating_mul(element).min(buffer.bytes);
            if buffer.kind == BufferKind::Arena && !range.is_empty() {
                out.push(StepAccess { buffer: place.buffer, range, write, whole: place.layout.is_dense() });
            }
        };
        match step {
            Step::Run { node, reads, writes } => {
                let Some(n) = graph.nodes.get(*node) else { return out };
                n.operands().zip(reads).for_each(|(v, p)| p.iter().for_each(|p| add(v, p, false)));
                n.results.iter().zip(writes).for_each(|(v, p)| p.iter().for_each(|p| add(*v, p, true)));
                if let Some(&buffer) = self.placement.scratch.get(node)
                    && let Some(b) = self.placement.buffers.get(buffer)
                    && b.bytes > 0
                {
                    out.push(StepAccess { buffer, range: 0..b.bytes, write: true, whole: true });
                }
            }
            Step::Move { value, from, to } => {
                add(*value, from, false);
                add(*value, to, true);
            }
            Step::Free { .. } => {}
        }
        out
    }

    fn step(
        &mut self,
        graph: &Graph,
        at: usize,
        step: &Step,
        fault: &mut impl FnMut(FaultKind, Option<usize>, String),
    ) {
        let all = self.accesses(graph, step);
        // Reads count before new writes.
        all.iter().filter(|a| !a.write).for_each(|a| self.count(at, a));
        all.iter().filter(|a| a.write).for_each(|a| self.count(at, a));
        let here = |walk: &PlanWalk<'_>, a: &StepAccess| {
            let offset = walk.offsets[a.buffer.index()]?;
            Some(offset + a.range.start..offset + a.range.end)
        };
        let mut spoilt = |walk: &PlanWalk<'_>| {
            for a in all.iter().filter(|a| !a.write) {
                if here(walk, a).is_some_and(|r| walk.lost[a.buffer.index()].touches(&r)) {
                    let what = format!("{} is read where another buffer has overwritten it", a.buffer);
                    fault(FaultKind::Shared, Some(at), what);
                    return true;
                }
            }
            false
        };
        if spoilt(self) {
            return;
        }
        // Bytes lost in this step.
        let mut stolen: Vec<(BufferId, Range<i64>)> = Vec::new();
        for a in all.iter().filter(|a| a.write) {
            let Some(range) = here(self, a) else { continue };
            for (bytes, other) in self.owner.set(&range, a.buffer) {
                if other != a.buffer {
                    self.lost[other.index()].set(&bytes, ());
                    stolen.push((other, bytes));
                }
            }
            if a.whole {
                self.lost[a.buffer.index()].take(&range);
            }
        }
        // A kernel reads operands and writes results and scratch at the same time.
        if spoilt(self) {
            return;
        }
        for a in all.iter().filter(|a| a.write) {
            let Some(range) = here(self, a) else { continue };
            let meets = |s: &&(BufferId, Range<i64>)| s.0 == a.buffer && s.1.start < range.end && range.start < s.1.end;
            if stolen.iter().any(|s| meets(&s)) {
                let what = format!("{} is written where another buffer is written", a.buffer);
                return fault(FaultKind::Shared, Some(at), what);
            }
        }
    }

    /// Counts the blocks that an access needs, back to the last access of the same content. A write with gaps needs the
    /// older content as well.
    fn count(&mut self, at: usize, a: &StepAccess) {
        let down = |n: i64| n - n.rem_euclid(ARENA_ALIGN);
        let bytes = self.placement.buffers[a.buffer].bytes;
        let blocks = down(a.range.start)..aligned(a.range.end);
        let end = if a.range.end == bytes { aligned(bytes) } else { down(a.range.end) };
        let anew = if a.write && a.whole { aligned(a.range.start)..end } else { 0..0 };
        let counted = &mut self.counted[a.buffer.index()];
        let mut add = |range: &Range<i64>, from: usize| {
            let size = i128::from(range.end - range.start);
            if from <= at && size > 0 {
                self.changes.extend([(from, size), (at + 1, -size)]);
            }
        };
        let before = counted.take(&blocks);
        let mut next = blocks.start;
        for (range, until) in before {
            if a.write {
                // No older content.
                add(&(next..range.start), at);
            }
            next = range.end;
            for part in [range.start..range.end.min(anew.start), range.start.max(anew.end)..range.end] {
                if !anew.is_empty() {
                    add(&part, until + 1);
                }
            }
            let over = range.start.max(anew.start)..range.end.min(anew.end);
            if anew.is_empty() {
                add(&range, until + 1);
            } else if until < at {
                add(&over, at);
            }
            if !a.write {
                counted.set(&range, at);
            }
        }
        if a.write {
            add(&(next..blocks.end), at);
            counted.set(&blocks, at);
        }
    }

    /// Largest sum of needed blocks at one step.
    fn most(mut self) -> i128 {
        self.changes.sort_unstable();
        let (mut now, mut most) = (0, 0);
        // Ends come before beginnings.
        for (_, change) in self.changes {
            now += change;
            most = most.max(now);
        }
        most
    }
}
