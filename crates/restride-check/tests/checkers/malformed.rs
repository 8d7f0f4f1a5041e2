//! Placements and plans that are none: reported, whatever is wrong with them.

use crate::build;
use restride_ir::{BufferId, Id, Place, Placement, Step};
use restride_passes::place::{PlaceOptions, place};
use restride_passes::plan::{PlanOptions, plan};
use restride_testing::rng::Rng;

fn places(placement: &mut Placement) -> Vec<&mut Place> {
    let mut out: Vec<&mut Place> = Vec::new();
    for step in &mut placement.steps {
        match step {
            Step::Run { reads, writes, .. } => out.extend(reads.iter_mut().chain(writes.iter_mut()).flatten()),
            Step::Move { from, to, .. } => out.extend([&mut **from, &mut **to]),
            Step::Free { .. } => {}
        }
    }
    out
}

/// Ranks that do not fit, absurd numbers, buffers that are not there: of every kind the checkers report, and never panic.
#[test]
fn what_is_no_layout_is_reported() {
    let mut rng = Rng::new(11);
    let absurd = [i64::MAX, i64::MIN, i64::MAX / 2, -1, 1 << 60];
    let mut faults = [0; 7];
    for round in 0..200 {
        let program = build::random(&mut rng);
        let placed = place(&program, &PlaceOptions::default()).expect("it is placed").placement;
        let good = plan(program.graph(), &placed, &PlanOptions::default());
        for (kind, found) in faults.iter_mut().enumerate() {
            let (mut damaged, mut offsets) = (placed.clone(), good.clone());
            let number = *rng.choose(&absurd);
            let buffers = damaged.buffers.len();
            let mut all = places(&mut damaged);
            if all.is_empty() || buffers == 0 {
                continue;
            }
            let at = rng.below(all.len());
            let layout = &mut all[at].layout;
            let rank = layout.sizes.len();
            match kind {
                0 if rank > 0 => drop(layout.strides.pop()),
                1 => layout.strides.push(number),
                2 => layout.sizes.push(2),
                3 if rank > 0 => layout.strides[rng.below(rank)] = number,
                4 => layout.offset = number,
                5 => all[at].buffer = BufferId::new(buffers + 3),
                6 => {
                    let id = BufferId::new(rng.below(buffers));
                    damaged.buffers[id].bytes = number;
                    offsets.offsets.set(id, Some(number));
                }
                _ => continue,
            }
            let checked = restride_check::placement(&program, &damaged);
            let _ = restride_check::plan(&program, &damaged, &offsets);
            // A stride along which there is one element is no matter.
            assert!(checked.is_err() || kind == 3 || kind == 6, "{round}: kind {kind} passes");
            *found += usize::from(checked.is_err());
        }
    }
    assert!(faults.iter().all(|n| *n > 20), "{faults:?}");
}
