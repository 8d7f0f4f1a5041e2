//! The timeline that a report shows is the memory plan, and its peak is the plan's bound.

use restride::{
    BufferRow, CompileOptions, Compiled, Inputs, OpenOptions, Owner, PlanTable, StepKind, Timeline, TimelinePart,
};
use restride_ir::aligned;
use std::path::{Path, PathBuf};

fn compiled(path: &Path) -> (Compiled, Inputs) {
    let program = restride::open(path, &OpenOptions::default()).expect("the program");
    let inputs = Inputs::from_samples(&program).expect("sample inputs").expect("that can be read");
    let compiled = Compiled::new(program, Some(&inputs), &CompileOptions::default()).expect("it compiles");
    (compiled, inputs)
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name)
}

const PROGRAMS: [&str; 8] = [
    "examples/batchnorm_train.pt2",
    "examples/box_decode.pt2",
    "examples/llama_decode.pt2",
    "examples/vit_small.pt2",
    "pt2/cond_branch.pt2",
    "pt2/data_dependent.pt2",
    "pt2/dynamic_batch.pt2",
    "pt2/kv_cache.pt2",
];

fn all() -> impl Iterator<Item = (&'static str, Timeline, PlanTable)> {
    PROGRAMS.into_iter().map(|name| {
        let (compiled, inputs) = compiled(&fixture(name));
        (
            name,
            compiled.prepare(&inputs).expect("a timeline").timeline(),
            compiled.prepare(&inputs).expect("a plan").plan_table(),
        )
    })
}

fn arena(part: &TimelinePart) -> impl Iterator<Item = &BufferRow> {
    part.buffers.iter().filter(|b| b.owner == Owner::Arena)
}

#[test]
fn blocks_are_the_rows_of_the_plan() {
    let mut rows = 0;
    for (name, timeline, plan) in all() {
        let mut found = Vec::new();
        for part in timeline.parts.iter().filter(|p| p.body.is_none()) {
            let named = |b: &BufferRow| b.values.iter().map(|v| part.values[*v].name.clone()).collect::<Vec<_>>();
            found.extend(arena(part).map(|b| (part.piece, b.offset.expect("an offset"), b.bytes, b.steps, named(b))));
        }
        let mut expected = Vec::new();
        for r in &plan.rows {
            let values: Vec<String> = r.values.iter().filter(|v| !v.starts_with("scratch of ")).cloned().collect();
            expected.push((r.segment, r.offset, r.bytes, r.steps, values));
        }
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{name}");
        rows += found.len();
    }
    assert!(rows > 40, "{rows} rows prove little");
}

#[test]
fn who_lives_at_the_peak_makes_it_up() {
    let mut peaks = 0;
    for (name, timeline, plan) in all() {
        for part in &timeline.parts {
            assert_eq!(part.live.len(), part.steps.len(), "{name}");
            for (step, live) in part.live.iter().enumerate() {
                // Counted anew from the plain lives.
                let alive = arena(part).filter(|b| b.steps.0 <= step && step <= b.steps.1);
                assert!(*live <= alive.map(|b| aligned(b.bytes)).sum::<i64>(), "{name}, step {step}");
                assert!(*live <= part.arena_bytes, "{name}, step {step}");
                let living = part.living(step);
                assert!(living.iter().all(|b| part.buffers[*b].owner == Owner::Arena), "{name}");
                let of = |b: &usize| {
                    let alive = part.buffers[*b].life.iter().filter(|r| r.first <= step && step <= r.last);
                    alive.map(|r| (r.bytes, aligned(r.bytes))).fold((0, 0), |s, n| (s.0 + n.0, s.1 + n.1))
                };
                assert!(living.is_sorted_by(|a, b| of(a).0 >= of(b).0), "{name}: not the largest first");
                assert_eq!(living.iter().map(|b| of(b).1).sum::<i64>(), *live, "{name}, step {step}");
            }
            let most = part.live.iter().max().copied().unwrap_or(0);
            assert_eq!(most, part.lower_bound_bytes, "{name}: the peak is not the bound");
            assert_eq!(part.peak().map_or(0, |p| part.live[p]), most, "{name}");
            peaks += usize::from(part.peak().is_some());
        }
        let most = timeline.parts.iter().filter(|p| p.body.is_none()).map(|p| p.lower_bound_bytes).max();
        assert_eq!(most, Some(plan.totals.lower_bound_bytes), "{name}");
    }
    assert!(peaks > 5, "{peaks} peaks prove little");
}

/// Memory that lives at the same step does not meet in bytes: the rectangles are where the plan has them.
#[test]
fn rectangles_do_not_meet() {
    for (name, timeline, _) in all() {
        for part in &timeline.parts {
            for (i, a) in part.buffers.iter().enumerate() {
                for r in &a.life {
                    assert!(a.steps.0 <= r.first && r.first <= r.last && r.last <= a.steps.1, "{name}: {r:?}");
                    let own = a.offset.expect("an offset");
                    assert!(own <= r.offset && r.offset + r.bytes <= own + a.bytes, "{name}: {r:?}");
                    for s in part.buffers[..i].iter().flat_map(|b| &b.life) {
                        let in_time = r.first <= s.last && s.first <= r.last;
                        let in_bytes = r.offset < s.offset + s.bytes && s.offset < r.offset + r.bytes;
                        assert!(!in_time || !in_bytes, "{name}: {r:?} {s:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn values_are_made_before_they_are_read() {
    for (name, timeline, _) in all() {
        for part in &timeline.parts {
            for v in &part.values {
                assert!(v.made.is_none_or(|m| v.read.is_none_or(|r| m < r)), "{name}: {v:?}");
                let Some(made) = v.made else { continue };
                let step = &part.steps[made];
                let site = step.site.as_ref().expect("a node");
                assert!(site.results.contains(&v.name), "{name}: {v:?} is not of {site}");
            }
            for step in &part.steps {
                let buffers = step.reads.iter().chain(&step.writes).map(|a| a.buffer).chain(step.scratch);
                assert!(buffers.into_iter().all(|b| b < part.buffers.len()), "{name}");
            }
        }
    }
}

#[test]
fn copies_are_where_explain_says() {
    let mut copies = 0;
    for name in PROGRAMS {
        let (compiled, inputs) = compiled(&fixture(name));
        let (timeline, explained) = (
            compiled.prepare(&inputs).expect("a timeline").timeline(),
            compiled.prepare(&inputs).expect("an explanation").explain(),
        );
        for c in &explained.copies {
            let of = |p: &&TimelinePart| p.piece == c.piece && p.body.as_ref().map(|b| &b.name) == c.body.as_ref();
            let part = timeline.parts.iter().find(of).expect("its part");
            let step = &part.steps[c.step];
            let kind = if c.run { StepKind::Copy } else { StepKind::Move };
            assert_eq!((step.kind, step.bytes), (kind, c.bytes), "{name}: {c:?}");
            copies += 1;
        }
        let moving =
            |p: &TimelinePart| p.steps.iter().filter(|s| matches!(s.kind, StepKind::Copy | StepKind::Move)).count();
        assert_eq!(timeline.parts.iter().map(moving).sum::<usize>(), explained.copies.len(), "{name}");
    }
    assert!(copies > 10, "{copies} copies prove little");
}

#[test]
fn pieces_and_bodies_are_all_there() {
    let (compiled, inputs) = compiled(&fixture("pt2/cond_branch.pt2"));
    let timeline = compiled.prepare(&inputs).expect("a timeline").timeline();
    let bodies: Vec<_> = timeline.parts.iter().filter_map(|p| p.body.as_ref()).collect();
    assert_eq!(bodies.len(), 2);
    for body in bodies {
        assert_eq!(body.steps.len(), 1);
        let site = timeline.parts[body.part].steps[body.steps[0]].site.as_ref().expect("a node");
        assert_eq!(site.op, "higher_order.cond");
    }
    let (compiled, inputs) = self::compiled(&fixture("pt2/data_dependent.pt2"));
    let timeline = compiled.prepare(&inputs).expect("a timeline").timeline();
    let learns: Vec<_> = timeline.parts.iter().map(|p| p.learns.as_ref().map(|s| s.op.clone())).collect();
    assert!(learns.len() > 1 && learns.iter().rev().skip(1).all(Option::is_some), "{learns:?}");
    assert_eq!(learns.last(), Some(&None));
    let weights = self::compiled(&fixture("examples/vit_small.pt2"));
    assert!(weights.0.prepare(&weights.1).expect("a timeline").timeline().weight_bytes > 100_000);
}
