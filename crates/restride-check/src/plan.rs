//! The plan judge: a sweep over the steps.

use crate::{Fault, FaultKind};
use restride_ir::{ARENA_ALIGN, BufferId, BufferKind, GraphId, Id, Placement, Plan, aligned};
use std::collections::BTreeMap;

/// Judges the offsets of a placement's arena buffers, and those of the bodies it holds.
///
/// # Errors
/// What is wrong.
pub fn plan(placement: &Placement, plan: &Plan) -> Result<(), Vec<Fault>> {
    let mut faults = Vec::new();
    judge(None, placement, plan, &mut faults);
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

/// A buffer in time: first and last step.
struct Life {
    id: BufferId,
    start: usize,
    end: usize,
    bytes: i64,
}

fn judge(graph: Option<GraphId>, placement: &Placement, plan: &Plan, faults: &mut Vec<Fault>) {
    let fault = |kind, step, what: String| Fault { kind, graph, step, node: None, value: None, place: None, what };
    let mut spans: Vec<Option<(usize, usize)>> = vec![None; placement.buffers.len()];
    for (at, step) in placement.steps.iter().enumerate() {
        for buffer in placement.touched(step) {
            match spans.get_mut(buffer.index()) {
                Some(span) => *span = Some((span.map_or(at, |s| s.0), at)),
                None => faults.push(fault(FaultKind::Malformed, Some(at), format!("{buffer} is not there"))),
            }
        }
    }
    let mut lives = Vec::new();
    for (id, buffer) in placement.buffers.iter() {
        let offset = plan.offsets[id];
        if buffer.kind != BufferKind::Arena {
            if offset.is_some() {
                faults.push(fault(FaultKind::Malformed, None, format!("{id} has an offset and is not in the arena")));
            }
            continue;
        }
        let Some((start, end)) = spans[id.index()] else { continue };
        let Some(offset) = offset else {
            faults.push(fault(FaultKind::Malformed, Some(start), format!("{id} has no offset")));
            continue;
        };
        if offset < 0 || i128::from(offset) + i128::from(buffer.bytes) > i128::from(plan.arena_bytes) {
            let what = format!("{id} of {} bytes at {offset} leaves the arena of {}", buffer.bytes, plan.arena_bytes);
            faults.push(fault(FaultKind::Outside, Some(start), what));
        }
        if offset % ARENA_ALIGN != 0 {
            faults.push(fault(FaultKind::Outside, Some(start), format!("{id} at {offset} is not aligned")));
        }
        if buffer.bytes > 0 {
            lives.push(Life { id, start, end, bytes: buffer.bytes });
        }
    }
    sweep(&lives, plan, |step, what| faults.push(fault(FaultKind::Shared, Some(step), what)));
    let bound = most_alive(&lives);
    if i128::from(plan.lower_bound_bytes) > bound {
        let what = format!("the lower bound is {}, and {bound} bytes live at once", plan.lower_bound_bytes);
        faults.push(fault(FaultKind::Claim, None, what));
    }
    // That a search has found nothing between the bound and what no plan is said to be smaller than is not judged.
    let claimed = plan.at_least_bytes;
    if claimed < plan.lower_bound_bytes || claimed > plan.arena_bytes {
        let what = format!("an arena of {} is called at least {claimed}", plan.arena_bytes);
        faults.push(fault(FaultKind::Claim, None, what));
    }
    if plan.optimal && plan.arena_bytes > claimed {
        let what = format!("an arena of {} is called the smallest, and {claimed} could do", plan.arena_bytes);
        faults.push(fault(FaultKind::Claim, None, what));
    }
    for (id, nested) in &placement.nested {
        judge(Some(*id), &nested.placement, &nested.plan, faults);
    }
}

/// Walks over time with the living ordered by offset: each newcomer is held against its neighbours.
fn sweep(lives: &[Life], plan: &Plan, mut shared: impl FnMut(usize, String)) {
    let offset = |l: &Life| plan.offsets[l.id].unwrap_or(0);
    let mut starts: Vec<&Life> = lives.iter().collect();
    starts.sort_by_key(|l| (l.start, l.id));
    let mut ends: Vec<&Life> = lives.iter().collect();
    ends.sort_by_key(|l| (l.end, l.id));
    let mut ended = ends.into_iter().peekable();
    // By offset: end of the bytes, and whose.
    let mut living: BTreeMap<i64, (i64, BufferId)> = BTreeMap::new();
    for new in starts {
        while let Some(gone) = ended.next_if(|l| l.end < new.start) {
            // A buffer that shared bytes was never entered.
            if living.get(&offset(gone)).is_some_and(|x| x.1 == gone.id) {
                living.remove(&offset(gone));
            }
        }
        let (from, to) = (offset(new), offset(new).saturating_add(new.bytes));
        let before = living.range(..to).next_back().filter(|(_, (end, _))| *end > from);
        if let Some((_, (_, other))) = before {
            shared(new.start, format!("{} and {other} share bytes of the arena while both live", new.id));
        } else {
            living.insert(from, (to, new.id));
        }
    }
}

/// The largest sum of bytes alive at one step, in whole blocks.
fn most_alive(lives: &[Life]) -> i128 {
    let mut changes: BTreeMap<usize, i128> = BTreeMap::new();
    for l in lives {
        *changes.entry(l.start).or_default() += i128::from(aligned(l.bytes));
        *changes.entry(l.end.saturating_add(1)).or_default() -= i128::from(aligned(l.bytes));
    }
    let (mut now, mut most) = (0, 0);
    for change in changes.values() {
        now += change;
        most = most.max(now);
    }
    most
}
