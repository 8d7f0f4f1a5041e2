//! The judge of plans against a model that looks at all pairs.

use super::{build, options};
use restride_ir::{ARENA_ALIGN, BufferId, BufferKind, Id, Placement, Plan, aligned};
use restride_passes::place::place;
use restride_passes::plan::{PlanOptions, plan};
use restride_testing::rng::Rng;

fn lives(placement: &Placement) -> Vec<(BufferId, usize, usize)> {
    let arena = placement.buffers.iter().filter(|(_, b)| b.kind == BufferKind::Arena);
    let life = |id: BufferId| {
        let touches = |s: &usize| placement.touched(&placement.steps[*s]).any(|b| b == id);
        let steps: Vec<usize> = (0..placement.steps.len()).filter(touches).collect();
        Some((id, *steps.first()?, *steps.last()?))
    };
    arena.filter_map(|(id, _)| life(id)).collect()
}

fn model(placement: &Placement, plan: &Plan) -> bool {
    let lives = lives(placement);
    let size = |b: BufferId| placement.buffers[b].bytes;
    let most = (0..placement.steps.len())
        .map(|s| lives.iter().filter(|l| l.1 <= s && s <= l.2).map(|l| aligned(size(l.0))).sum::<i64>())
        .max()
        .unwrap_or(0);
    let mut fine = plan.lower_bound_bytes <= most;
    fine &= plan.lower_bound_bytes <= plan.at_least_bytes && plan.at_least_bytes <= plan.arena_bytes;
    fine &= !plan.optimal || plan.arena_bytes == plan.at_least_bytes;
    fine &= placement.buffers.iter().all(|(id, b)| b.kind == BufferKind::Arena || plan.offsets[id].is_none());
    for (i, a) in lives.iter().enumerate() {
        let Some(at) = plan.offsets[a.0] else { return false };
        fine &= at >= 0 && at % ARENA_ALIGN == 0 && at + size(a.0) <= plan.arena_bytes;
        for b in &lives[..i] {
            let Some(other) = plan.offsets[b.0] else { return false };
            let together = a.1 <= b.2 && b.1 <= a.2;
            fine &= !together || size(a.0) == 0 || size(b.0) == 0 || at + size(a.0) <= other || other + size(b.0) <= at;
        }
    }
    fine
}

#[test]
fn plans_are_judged_as_by_all_pairs() {
    let mut rng = Rng::new(3);
    let (mut right, mut wrong) = (0, 0);
    for _ in 0..300 {
        let program = build::random(&mut rng);
        let placement = place(&program, &options(&mut rng)).unwrap().placement;
        let good = plan(&placement, &PlanOptions::default());
        assert!(model(&placement, &good) && restride_check::plan(&placement, &good).is_ok());
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
            let judged = restride_check::plan(&placement, &bad);
            assert_eq!(model(&placement, &bad), judged.is_ok(), "{judged:?}\n{placement:?}\n{bad:?}");
            if judged.is_ok() { right += 1 } else { wrong += 1 }
        }
    }
    assert!(right > 100 && wrong > 1000, "{right} {wrong}");
}

#[test]
fn an_offset_for_memory_of_the_caller_is_rejected() {
    let mut rng = Rng::new(4);
    let program = build::random(&mut rng);
    let placement = place(&program, &restride_passes::place::PlaceOptions::default()).unwrap().placement;
    let mut bad = plan(&placement, &PlanOptions::default());
    let input = placement.buffers.iter().find(|(_, b)| b.kind != BufferKind::Arena).unwrap().0;
    bad.offsets.set(BufferId::new(input.index()), Some(0));
    assert!(restride_check::plan(&placement, &bad).is_err());
}
