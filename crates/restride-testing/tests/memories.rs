//! Plans over several memories: right, checked, and optimal where an exhaustive search is possible.

use restride::RunOptions;
use restride_exec::run::Runnable;
use restride_ir::{BufferId, BufferKind, ErrorKind, Plan};
use restride_passes::place::PlaceOptions;
use restride_passes::plan::{MemorySpec, PlanOptions, plan, plan_memories};
use restride_testing::difference;
use restride_testing::generate::generate;
use restride_testing::outcome::Leftovers;
use restride_testing::segment_run::SegmentRun;

fn memory(name: &str, capacity: Option<i64>) -> MemorySpec {
    MemorySpec { name: name.into(), capacity, pins: Vec::new() }
}

/// A generated program as it is placed, with what the interpreter leaves.
struct Case {
    piece: SegmentRun,
    placement: restride_ir::Placement,
    whole: Plan,
    eager: Leftovers,
}

fn case(seed: u64) -> Option<Case> {
    let sample = generate(seed);
    let eager = Leftovers::interp(&sample.program, &sample.inputs, &RunOptions::default()).ok()?;
    let piece = SegmentRun::of(&sample)?;
    let placement = piece.place(&PlaceOptions::default()).ok()?;
    let whole = plan(piece.program.graph(), &placement, &PlanOptions::default());
    (whole.arena_bytes > 128).then_some(Case { piece, placement, whole, eager })
}

impl Case {
    fn plan(&self, specs: &[MemorySpec]) -> restride_ir::Result<Plan> {
        plan_memories(self.piece.program.graph(), &self.placement, &PlanOptions::default(), specs)
    }
}

#[test]
fn what_is_planned_over_memories_is_accepted_and_right() {
    let (mut ran, mut spilled, mut moved) = (0, 0, 0);
    for seed in 0..200 {
        let Some(case) = case(seed) else { continue };
        let share = [0, 64, case.whole.arena_bytes / 3, case.whole.arena_bytes / 2, case.whole.arena_bytes];
        let capacity = share[seed as usize % share.len()];
        let plan = case.plan(&[memory("fast", Some(capacity)), memory("slow", None)]).expect("slow has no limit");
        let checked = restride_check::plan(&case.piece.program, &case.placement, &plan);
        checked.unwrap_or_else(|f| panic!("seed {seed}: {f:?}"));
        assert!(plan.memories[0].bytes <= capacity && plan.spilled_at_least <= plan.spilled(), "seed {seed}");
        if capacity == case.whole.arena_bytes {
            assert_eq!((plan.spilled(), plan.memories[1].bytes), (0, 0), "seed {seed}: everything fits");
        }
        spilled += usize::from(plan.spilled() > 0);
        let runnable =
            Runnable::checked(&case.piece.program, case.placement.clone(), plan.clone()).expect("it is a plan");
        let left = case.piece.run(&runnable).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        assert_eq!(difference(&case.eager, &left), None, "seed {seed}");
        ran += 1;
        // A buffer of the one memory in the other one is what the checker must see.
        let inside = |id: BufferId| plan.offsets[id].and_then(|at| plan.memory_at(at)).map(|m| m.name.clone());
        let fast = case
            .placement
            .buffers
            .iter()
            .find(|(id, b)| b.kind == BufferKind::Arena && b.bytes > 0 && inside(*id).as_deref() == Some("fast"));
        if let (Some((id, _)), true) = (fast, plan.memories[1].bytes > 0 && plan.memories[0].traffic > 0) {
            let mut bad = plan.clone();
            bad.offsets.set(id, Some(plan.memories[1].start));
            moved += usize::from(restride_check::plan(&case.piece.program, &case.placement, &bad).is_err());
            let mut bad = plan.clone();
            bad.memories[0].capacity = Some(plan.memories[0].bytes - 64);
            assert!(restride_check::plan(&case.piece.program, &case.placement, &bad).is_err(), "seed {seed}");
            let mut bad = plan;
            bad.memories[1].traffic -= 1;
            assert!(restride_check::plan(&case.piece.program, &case.placement, &bad).is_err(), "seed {seed}");
        }
    }
    assert!(ran > 55 && spilled > 20 && moved > 10, "{ran} {spilled} {moved}");
}

#[test]
fn what_does_not_fit_is_refused_with_what_it_needs() {
    let case = (0..).find_map(|seed| case(seed).filter(|c| c.whole.arena_bytes > 256)).expect("a program");
    let refused = |specs: &[MemorySpec]| case.plan(specs).expect_err("it does not fit");
    let error = refused(&[memory("fast", Some(64)), memory("slow", Some(64))]);
    assert_eq!(error.kind, ErrorKind::Unsupported);
    assert!(error.to_string().contains("do not fit into the memories"), "{error}");
    let pinned = |name: &str| MemorySpec { pins: vec![name.into()], ..memory("fast", Some(0)) };
    let error = refused(&[pinned("nothing_of_this_name"), memory("slow", None)]);
    assert!(error.to_string().contains("is called %nothing_of_this_name"), "{error}");
    let graph = case.piece.program.graph();
    let in_arena = graph.values.ids().find(|v| {
        let place = case.placement.places[*v].as_ref();
        place.is_some_and(|p| case.placement.buffers[p.buffer].kind == BufferKind::Arena && p.layout.numel() > 0)
    });
    let name = graph.values[in_arena.expect("a value")].name.to_string();
    let error = refused(&[pinned(&name), memory("slow", None)]);
    assert!(error.to_string().contains("pinned to fast need"), "{error}");
    let error = refused(&[memory("one", None), memory("one", None)]);
    assert!(error.to_string().contains("two memories are called one"), "{error}");
    let input = graph.values[graph.inputs[0]].name.to_string();
    let error = refused(&[MemorySpec { pins: vec![input], ..memory("fast", None) }]);
    assert!(error.to_string().contains("is not stored in the arena"), "{error}");
}

#[test]
fn offsets_are_aligned_as_asked_and_the_results_stay() {
    let mut ran = 0;
    for seed in 0..90 {
        let Some(case) = case(seed) else { continue };
        let options = PlanOptions { align: 4096, ..PlanOptions::default() };
        let plan = plan(case.piece.program.graph(), &case.placement, &options);
        let checked = restride_check::plan(&case.piece.program, &case.placement, &plan);
        checked.unwrap_or_else(|f| panic!("seed {seed}: {f:?}"));
        let all = case.placement.buffers.ids().filter_map(|id| plan.offsets[id]);
        assert!(all.into_iter().all(|at| at % 4096 == 0), "seed {seed}: {plan:?}");
        let runnable = Runnable::checked(&case.piece.program, case.placement.clone(), plan).expect("it is a plan");
        let left = case.piece.run(&runnable).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        assert_eq!(difference(&case.eager, &left), None, "seed {seed}");
        ran += 1;
    }
    assert!(ran > 30, "{ran}");
}
