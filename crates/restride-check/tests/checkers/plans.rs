//! The checker of plans against a model that looks at all pairs.

use super::{build, options};
use restride_ir::{ARENA_ALIGN, BufferId, BufferKind, Id, Place, Placement, Plan, Program, Step, ValueId, aligned};
use restride_passes::place::place;
use restride_passes::plan::{PlanOptions, plan};
use restride_testing::rng::Rng;

/// The first and the last byte that a step touches of a buffer of the arena, and whether it writes all between or some or reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Touch {
    Read,
    Some,
    All,
}

/// What each step does to each byte of each buffer of the arena.
fn touches(program: &Program, placement: &Placement) -> Vec<Vec<(BufferId, std::ops::Range<i64>, Touch)>> {
    let graph = program.graph();
    let bytes = |v: ValueId, place: &Place| {
        let size = graph.values[v].ty.tensor().unwrap().dtype.size() as i64;
        let mut cells = place.layout.cells();
        cells.sort_unstable();
        let range = cells.first().map_or(0, |c| c * size)..cells.last().map_or(0, |c| (c + 1) * size);
        let dense = cells.windows(2).all(|c| c[0] + 1 == c[1]);
        (place.buffer, range, dense)
    };
    let step = |step: &Step| {
        let mut out = Vec::new();
        let mut add = |v: ValueId, place: &Place, write: bool| {
            if place.layout.sizes.contains(&0) {
                return;
            }
            let (buffer, range, dense) = bytes(v, place);
            let how = if !write {
                Touch::Read
            } else if dense {
                Touch::All
            } else {
                Touch::Some
            };
            out.push((buffer, range, how));
        };
        match step {
            Step::Run { node, reads, writes } => {
                let n = &graph.nodes[*node];
                n.operands().zip(reads).for_each(|(v, p)| p.iter().for_each(|p| add(v, p, false)));
                n.results.iter().zip(writes).for_each(|(v, p)| p.iter().for_each(|p| add(*v, p, true)));
                if let Some(&b) = placement.scratch.get(node) {
                    out.push((b, 0..placement.buffers[b].bytes, Touch::All));
                }
            }
            Step::Move { value, from, to } => {
                add(*value, from, false);
                add(*value, to, true);
            }
            Step::Free { .. } => {}
        }
        out.retain(|t| placement.buffers[t.0].kind == BufferKind::Arena);
        out
    };
    placement.steps.iter().map(step).collect()
}

/// The steps at which the content of a byte, or of a block, of a buffer is needed.
fn needed(
    steps: &[Vec<(BufferId, std::ops::Range<i64>, Touch)>],
    b: BufferId,
    bytes: std::ops::Range<i64>,
    end: i64,
) -> Vec<bool> {
    let mut out = vec![false; steps.len()];
    let mut since: Option<usize> = None;
    for (at, step) in steps.iter().enumerate() {
        let meets =
            |t: &&(BufferId, std::ops::Range<i64>, Touch)| t.0 == b && t.1.start < bytes.end && bytes.start < t.1.end;
        let own: Vec<_> = step.iter().filter(meets).collect();
        let read = own.iter().any(|t| t.2 == Touch::Read);
        if read && let Some(since) = since {
            out[since..=at].fill(true);
        }
        if own.iter().any(|t| t.2 != Touch::Read) {
            let whole = |t: &&&(BufferId, std::ops::Range<i64>, Touch)| {
                t.2 == Touch::All && t.1.start <= bytes.start && (t.1.end >= bytes.end || t.1.end == end)
            };
            since = if own.iter().any(|t| whole(&t)) && !read { Some(at) } else { since.or(Some(at)) };
            out[at] = true;
        }
    }
    out
}

fn model(program: &Program, placement: &Placement, plan: &Plan) -> bool {
    let steps = touches(program, placement);
    let used = |id: BufferId| placement.steps.iter().any(|s| placement.touched(s).any(|b| b == id));
    let arena: Vec<BufferId> =
        placement.buffers.iter().filter(|(id, b)| b.kind == BufferKind::Arena && used(*id)).map(|(id, _)| id).collect();
    let mut fine = plan.lower_bound_bytes <= plan.at_least_bytes && plan.at_least_bytes <= plan.arena_bytes;
    fine &= !plan.optimal || plan.arena_bytes == plan.at_least_bytes;
    fine &= placement.buffers.iter().all(|(id, b)| b.kind == BufferKind::Arena || plan.offsets[id].is_none());
    let mut sums = vec![0; steps.len()];
    // Who needs a byte of the arena at a step.
    let mut whose: std::collections::BTreeMap<(usize, i64), BufferId> = std::collections::BTreeMap::new();
    for &b in &arena {
        let size = placement.buffers[b].bytes;
        let Some(at) = plan.offsets[b] else { return false };
        fine &= at >= 0 && at % ARENA_ALIGN == 0 && at + size <= plan.arena_bytes;
        for block in (0..aligned(size)).step_by(ARENA_ALIGN as usize) {
            let alive = needed(&steps, b, block..block + ARENA_ALIGN, size);
            sums.iter_mut().zip(alive).for_each(|(s, a)| *s += ARENA_ALIGN * i64::from(a));
        }
        for byte in 0..size {
            for (step, alive) in needed(&steps, b, byte..byte + 1, size).into_iter().enumerate() {
                fine &= !alive || whose.insert((step, at + byte), b).is_none();
            }
        }
    }
    fine && plan.lower_bound_bytes <= sums.into_iter().max().unwrap_or(0)
}

#[test]
fn plans_are_checked_as_by_all_pairs() {
    let mut rng = Rng::new(3);
    let (mut right, mut wrong) = (0, 0);
    for _ in 0..300 {
        let program = build::random(&mut rng);
        let placement = place(&program, &options(&mut rng)).unwrap().placement;
        let good = plan(program.graph(), &placement, &PlanOptions::default());
        assert!(model(&program, &placement, &good) && restride_check::plan(&program, &placement, &good).is_ok());
        let arena: Vec<BufferId> =
            placement.buffers.iter().filter(|(_, b)| b.kind == BufferKind::Arena).map(|(id, _)| id).collect();
        if arena.is_empty() {
            continue;
        }
        for _ in 0..20 {
            let mut bad = good.clone();
            let b = *rng.choose(&arena);
            match rng.below(7) {
                0 => bad.offsets.set(b, good.offsets[*rng.choose(&arena)]),
                1 => bad.offsets.set(b, good.offsets[b].map(|o| o + 64 * rng.below(4) as i64 - 64)),
                2 => bad.offsets.set(b, good.offsets[b].map(|o| o + [4, 32, 60][rng.below(3)])),
                3 => bad.offsets.set(b, None),
                4 => bad.arena_bytes -= 64,
                5 => bad.lower_bound_bytes += 64,
                _ => {
                    bad.arena_bytes += 64;
                    bad.optimal = true;
                }
            }
            let checked = restride_check::plan(&program, &placement, &bad);
            assert_eq!(model(&program, &placement, &bad), checked.is_ok(), "{checked:?}\n{placement:?}\n{bad:?}");
            if checked.is_ok() { right += 1 } else { wrong += 1 }
        }
    }
    assert!(right > 100 && wrong > 1000, "{right} {wrong}");
}

#[test]
fn an_offset_for_memory_of_the_caller_is_rejected() {
    let mut rng = Rng::new(4);
    let program = build::random(&mut rng);
    let placement = place(&program, &restride_passes::place::PlaceOptions::default()).unwrap().placement;
    let mut bad = plan(program.graph(), &placement, &PlanOptions::default());
    let input = placement.buffers.iter().find(|(_, b)| b.kind != BufferKind::Arena).unwrap().0;
    bad.offsets.set(BufferId::new(input.index()), Some(0));
    assert!(restride_check::plan(&program, &placement, &bad).is_err());
}
