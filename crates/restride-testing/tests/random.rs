//! Random programs in all ways. `SEEDS=FROM..TO` selects programs.

use restride::CompileOptions;
use restride_testing::{
    RandomProgram, WaysVerdict, by_chance, differential, generate, generate_checked, metamorphic, reduce,
};
use std::collections::BTreeMap;

fn verdict(sample: &RandomProgram) -> WaysVerdict {
    differential(&sample.program, &sample.inputs, &CompileOptions::default())
}

fn wrong(sample: &RandomProgram) -> Option<&'static str> {
    match verdict(sample) {
        WaysVerdict::Wrong(way, _) => Some(way),
        _ => None,
    }
}

#[test]
fn all_ways_agree_on_random_programs() {
    let seeds = std::env::var("SEEDS").ok();
    let range = seeds.as_deref().and_then(|s| s.split_once(".."));
    let range = range.and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?))).unwrap_or((0u64, 150));
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut refusals: BTreeMap<String, usize> = BTreeMap::new();
    let mut failures = Vec::new();
    for seed in range.0..range.1 {
        let sample = generate(seed);
        let what = match verdict(&sample) {
            WaysVerdict::Agree => match differential(&sample.program, &sample.inputs, &by_chance(seed)) {
                WaysVerdict::Agree => {
                    let held = |s: &RandomProgram| metamorphic(&s.program, &s.inputs, &CompileOptions::default());
                    match held(&sample) {
                        Ok(()) => "agree",
                        Err(_) => {
                            let small = reduce(&sample, |s| verdict(s) == WaysVerdict::Agree && held(s).is_err());
                            let text = restride_ir::text::print(&small.program);
                            failures.push(format!("seed {seed}: {}\n{text}", held(&small).unwrap_err()));
                            "wrong"
                        }
                    }
                }
                other => {
                    failures.push(format!(
                        "seed {seed}, placed by chance: {other:?}\n{}",
                        restride_ir::text::print(&sample.program)
                    ));
                    "wrong"
                }
            },
            WaysVerdict::Rejected(_) => "rejected",
            WaysVerdict::Refused(way, why) => {
                *refusals.entry(format!("{way}: {}", why.split(" (at").next().unwrap_or(""))).or_default() += 1;
                "refused"
            }
            WaysVerdict::Wrong(way, _) => {
                let small = reduce(&sample, |s| wrong(s) == Some(way));
                let text = restride_ir::text::print(&small.program);
                failures.push(format!("seed {seed}: {:?}\n{text}", verdict(&small)));
                "wrong"
            }
        };
        *counts.entry(what).or_default() += 1;
        if failures.len() >= 5 {
            break;
        }
    }
    println!("{counts:?}");
    refusals.iter().for_each(|(why, n)| println!("{n} {why}"));
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    let total: usize = counts.values().sum();
    let agree = counts.get("agree").copied().unwrap_or(0);
    assert!(agree * 2 > total, "only {agree} of {total} programs run");
}

/// Programs with several recorded checks mostly refuse their inputs, and then every way does.
#[test]
fn all_ways_hold_to_recorded_checks() {
    let (mut agree, mut rejected, mut failures) = (0, 0, Vec::new());
    for seed in 0..200 {
        let sample = generate_checked(seed);
        match verdict(&sample) {
            WaysVerdict::Agree => agree += 1,
            WaysVerdict::Rejected(_) => rejected += 1,
            WaysVerdict::Refused(..) => {}
            WaysVerdict::Wrong(way, _) => {
                let small = reduce(&sample, |s| wrong(s) == Some(way));
                let text = restride_ir::text::print(&small.program);
                failures.push(format!("seed {seed}: {:?}\n{text}", verdict(&small)));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert!(agree > 20 && rejected > 40, "{agree} run and {rejected} are rejected");
}

/// Outputs that share memory which is written over in the end: written back in place, they are kept before that.
#[test]
fn shared_outputs_are_kept_before_they_are_written_over() {
    for seed in [160, 887] {
        let sample = generate(seed);
        assert_eq!(verdict(&sample), WaysVerdict::Agree, "seed {seed}");
        assert_eq!(metamorphic(&sample.program, &sample.inputs, &CompileOptions::default()), Ok(()), "seed {seed}");
    }
}

/// Programs whose strides, offsets or views of bytes one of the ways had otherwise than eager.
#[test]
fn strides_and_offsets_are_eager_s() {
    // Windows of a negated input; a copy of windows; an output on a base with an offset; bytes of a column; the offset of no elements.
    for seed in [2023425, 7006667, 2022940, 2016738, 2010092, 300783] {
        let sample = generate(seed);
        assert_eq!(verdict(&sample), WaysVerdict::Agree, "seed {seed}");
        assert_eq!(metamorphic(&sample.program, &sample.inputs, &CompileOptions::default()), Ok(()), "seed {seed}");
    }
    // A region by strides with gaps, of a base whose memory has none.
    for seed in [2010460, 5008737] {
        let sample = generate(seed);
        let placed = differential(&sample.program, &sample.inputs, &by_chance(seed));
        assert_eq!(placed, WaysVerdict::Agree, "seed {seed}");
    }
    // A value that is made in the region of a scatter for its source, and outlives the scatter, or a view of it does.
    for seed in [9631768, 9837432] {
        let sample = generate(seed);
        assert_eq!(verdict(&sample), WaysVerdict::Agree, "seed {seed}");
        let placed = differential(&sample.program, &sample.inputs, &by_chance(seed));
        assert_eq!(placed, WaysVerdict::Agree, "seed {seed}");
    }
    // A negated operand of a body is viewed as another type, in the first iteration or in a later one.
    for seed in [2763, 207878512] {
        let found = verdict(&generate(seed));
        assert!(matches!(found, WaysVerdict::Rejected(_) | WaysVerdict::Refused(..)), "seed {seed}: {found:?}");
    }
}
