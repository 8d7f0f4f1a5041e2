//! Programs within a memory budget: the same results bit for bit, and no more memory than reported.

use restride::{
    CompileOptions, Compiled, GradOptions, Inputs, Keep, OpenOptions, Program, RawTensor, RunOptions, RunValue,
    UpperBound, open,
};
use restride_testing::{Leftovers, WaysVerdict, difference, differential, generate};
use std::path::Path;

fn options(budget: Option<i64>) -> CompileOptions {
    CompileOptions { budget, poison: true, ..CompileOptions::default() }
}

/// The bytes of the arena, and how many nodes run again.
fn arena(program: &Program, inputs: &Inputs, budget: Option<i64>) -> restride::Result<(i64, usize)> {
    let report = Compiled::new(program.clone(), Some(inputs), &options(budget))?.prepare(inputs)?.report();
    Ok((report.plan.arena_bytes, report.again.0))
}

/// How programs fared: budgets that were met, and those that were not.
#[derive(Default, Debug)]
struct Met {
    yes: usize,
    no: usize,
    again: usize,
}

/// Holds a program under several budgets.
fn hold(name: &str, (program, inputs): (&Program, &Inputs), shares: &[i64], met: &mut Met) {
    let Ok((whole, _)) = arena(program, inputs, None) else { return };
    for share in shares {
        let budget = whole * share / 100;
        match arena(program, inputs, Some(budget)) {
            Ok((bytes, again)) => {
                assert!(bytes <= budget, "{name}: {bytes} bytes within {budget}");
                let same = differential(program, inputs, &options(Some(budget)));
                assert_eq!(same, WaysVerdict::Agree, "{name}, within {budget} of {whole} bytes");
                met.yes += 1;
                met.again += again;
            }
            Err(e) => {
                let (why, help) = (e.what.clone(), e.help.clone().unwrap_or_default());
                assert!(why.starts_with(&format!("the arena cannot be brought to {budget} bytes")), "{name}: {why}");
                assert!(why.contains("at once: "), "{name}: {why}");
                let least =
                    help.strip_prefix("--budget ").and_then(|h| h.split(' ').next()).and_then(|n| n.parse().ok());
                let least: i64 = least.unwrap_or_else(|| panic!("{name}: {help}"));
                assert!(budget < least && least <= whole, "{name}: {least}");
                let (bytes, _) = arena(program, inputs, Some(least)).unwrap_or_else(|e| panic!("{name}: {e}"));
                assert!(bytes <= least, "{name}: {bytes} bytes within {least}");
                met.no += 1;
            }
        }
    }
}

#[test]
fn random_programs_within_budgets() {
    let mut met = Met::default();
    for seed in 0..60 {
        let sample = generate(seed);
        if differential(&sample.program, &sample.inputs, &options(None)) == WaysVerdict::Agree {
            hold(&format!("seed {seed}"), (&sample.program, &sample.inputs), &[80, 40], &mut met);
        }
    }
    println!("{met:?}");
    assert!(met.yes > 10 && met.no > 10, "{met:?}");
}

/// A program whose values are read late: pointwise, products of matrices, views, halves, draws, and writes to an input.
fn late(seed: u64) -> (Program, Inputs) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut below = |n: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % n
    };
    let ty = "f32[16, 16]";
    let mut text = format!("graph(%v0: {ty}, %v1: {ty}, %w: {ty}) {{\n");
    let n = 12 + below(30);
    for i in 2..n {
        // The values before, those far away as likely as those near.
        let (a, b) = (format!("%v{}", below(i)), format!("%v{}", i - 1 - below(i.min(4))));
        let call = match below(12) {
            0 => format!("aten.mm.default({a}, {b})"),
            1 => format!("aten.rand_like.default({a})"),
            2 | 3 => format!("aten.mul.Tensor({a}, {b})"),
            4 | 5 => format!("aten.sub.Tensor({b}, {a})"),
            6 => {
                text += &format!("  %t{i}: {ty}[1, 16] = aten.t.default({a})\n");
                format!("aten.add.Tensor({b}, %t{i})")
            }
            7 => {
                text += &format!("  %h{i}: f32[8, 16][16, 1] = aten.slice.Tensor({a}, 0, 0, 8)\n");
                text += &format!("  %k{i}: f32[8, 16] = aten.tanh.default(%h{i})\n");
                format!("aten.cat.default([%k{i}, %h{i}])")
            }
            8 => {
                text += &format!("  %m{i}: {ty} = aten.add_.Tensor(%w, {b})\n");
                format!("aten.sin.default(%m{i})")
            }
            9 => {
                text += &format!("  %s{i}: f32[16, 1] = aten.sum.dim_IntList({a}, [1], True)\n");
                format!("aten.add.Tensor({b}, %s{i})")
            }
            10 => format!("aten.cos.default({b})"),
            _ => format!("aten.sigmoid.default({a})"),
        };
        text += &format!("  %v{i}: {ty} = {call}\n");
    }
    let (x, y) = (n - 1, below(n - 1));
    text += &format!(
        "  %r: {ty} = aten.add.Tensor(%v{x}, %v{y})\n  %o: f32[] = aten.sum.default(%r)\n  return %o, %v{y}\n}}"
    );
    let program = restride_ir::text::parse(&text, &restride_ops::lookup).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let inputs = restride::random_inputs(&program, seed).expect("inputs");
    (program, inputs)
}

#[test]
fn programs_that_read_late_within_budgets() {
    let mut met = Met::default();
    for seed in 0..40 {
        let (program, inputs) = late(seed);
        assert_eq!(differential(&program, &inputs, &options(None)), WaysVerdict::Agree, "{seed}");
        hold(&format!("late {seed}"), (&program, &inputs), &[90, 80, 60], &mut met);
    }
    println!("{met:?}");
    assert!(met.yes > 20 && met.no > 20 && met.again > 60, "{met:?}");
}

fn example(name: &str) -> (Program, Inputs) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/examples").join(name);
    let program = open(&path, &OpenOptions::default()).expect(name);
    let inputs = Inputs::from_samples(&program).expect("samples").expect("that can be read");
    (program, inputs)
}

fn joint(program: &Program, inputs: &Inputs) -> (Compiled, Program) {
    let compiled = Compiled::new(program.clone(), Some(inputs), &CompileOptions::default()).expect("compiles");
    let joint = compiled.grad(&GradOptions::default()).expect("differentiates");
    (compiled, joint)
}

#[test]
fn training_within_budgets() {
    let (program, inputs) = example("classifier.pt2");
    let (_, joint) = joint(&program, &inputs);
    let mut met = Met::default();
    hold("classifier", (&joint, &inputs), &[90, 70, 50, 30], &mut met);
    assert!(met.yes > 0, "{met:?}");
}

/// A plan within a budget leaves with the program, and says which nodes run again.
#[test]
fn a_budget_goes_with_the_file() {
    let (program, inputs) = example("classifier.pt2");
    let (_, joint) = joint(&program, &inputs);
    let (whole, _) = arena(&joint, &inputs, None).expect("compiles");
    let budget = whole * 8 / 10;
    let path = std::env::temp_dir().join(format!("restride-budget-{}.pt2", std::process::id()));
    let within = Compiled::new(joint.clone(), Some(&inputs), &options(Some(budget))).expect("compiles");
    within.save(&inputs, &path).expect("saves");
    let opened = open(&path, &OpenOptions::default()).expect("opens");
    let saved = restride::saved_plan(&path, &OpenOptions::default()).expect("reads").map(std::sync::Arc::new);
    std::fs::remove_file(&path).expect("was written");
    assert!(saved.is_some());
    let took = CompileOptions { saved, ..options(None) };
    let compiled = Compiled::new(opened, Some(&inputs), &took).expect("compiles");
    let report = compiled.prepare(&inputs).expect("the plan is right").report();
    assert!(report.plan.arena_bytes <= budget && report.again.0 > 0, "{report:?}");
    let run = |c: &Compiled| Leftovers::planned(c, &inputs, &RunOptions::default()).expect("runs");
    let plain = Compiled::new(joint, Some(&inputs), &options(None)).expect("compiles");
    assert_eq!(difference(&run(&plain), &run(&compiled)), None);
}

#[test]
fn what_backward_keeps_changes_no_bit() {
    let (program, inputs) = example("classifier.pt2");
    let (compiled, joint) = joint(&program, &inputs);
    let placed = |p: &Program| Compiled::new(p.clone(), Some(&inputs), &options(None)).expect("compiles");
    let run = |p: &Program| Leftovers::planned(&placed(p), &inputs, &RunOptions::default()).expect("runs");
    let bytes = |p: &Program| placed(p).prepare(&inputs).expect("compiles").report().plan.arena_bytes;
    let want = run(&joint);
    let choose = |keep: Keep| compiled.keep(&joint, &GradOptions::default(), keep, Some(&inputs));
    let all = choose(Keep::All).expect("all");
    assert_eq!((all.again, all.bytes), (0, all.all_bytes));
    let none = choose(Keep::None).expect("none");
    assert!(none.again > 0 && none.bytes < all.bytes, "{none:?}");
    assert!(bytes(&none.program) < bytes(&joint), "{} bytes", bytes(&none.program));
    assert_eq!(difference(&want, &run(&none.program)), None);
    let auto = choose(Keep::Auto).expect("auto");
    assert!(auto.again > 0 && auto.again < none.again, "{} nodes, {} of all", auto.again, none.again);
    assert!(bytes(&auto.program) < bytes(&joint), "{} bytes", bytes(&auto.program));
    assert_eq!(difference(&want, &run(&auto.program)), None);
    for share in [75, 50, 25] {
        let most = all.bytes * share / 100;
        match choose(Keep::Bytes(most)) {
            Ok(some) => {
                assert!(some.bytes <= most);
                assert_eq!(difference(&want, &run(&some.program)), None);
            }
            Err(e) => assert!(e.to_string().contains("cannot be recomputed"), "{e}"),
        }
    }
}

/// Pointwise operators and sums.
const PLAIN: &str = "symbol n in [2, 40]
symbol m in [1, 9]
graph(%x: f32[n, m], %y: f32[m]) {
  %a: f32[n, m] = aten.exp.default(%x)
  %b: f32[n, m] = aten.mul.Tensor(%a, %y)
  %c: f32[n, m] = aten.add.Tensor(%b, %a)
  %d: f32[n] = aten.sum.dim_IntList(%c, [1])
  %e: f32[] = aten.sum.default(%d)
  return %e
}";

/// Values of many sizes at once, some of one symbol, some of both: which of them is the larger differs from binding to binding.
const MIXED: &str = "symbol n in [2, 40]
symbol m in [1, 30]
graph(%x: f32[n, 16], %y: f32[m, 16]) {
  %a: f32[n, 16] = aten.exp.default(%x)
  %b: f32[m, 16] = aten.exp.default(%y)
  %c: f32[n + m, 16] = aten.cat.default([%a, %b])
  %t: f32[16, m][1, 16] = aten.t.default(%b)
  %d: f32[n, m] = aten.mm.default(%a, %t)
  %e: f32[n, m] = aten.softmax.int(%d, 1)
  %f: f32[n, 16] = aten.mm.default(%e, %b)
  %g: f32[n + m, 16] = aten.mul.Tensor(%c, %c)
  %h: f32[16] = aten.sum.dim_IntList(%g, [0])
  %i: f32[n, 16] = aten.add.Tensor(%f, %h)
  %s: f32[m, 16] = aten.cumsum.default(%y, 0)
  %u: f32[n, m] = aten.mm.default(%i, %t)
  %v: f32[n, 16] = aten.mm.default(%u, %s)
  %w: f32[n, 16] = aten.mul.Tensor(%v, %a)
  %j: f32[n] = aten.sum.dim_IntList(%w, [1])
  %k: f32[] = aten.sum.default(%j)
  return %k
}";

/// Sizes within their ranges need no more than the bound, and an instance that has it takes no more.
#[test]
fn the_bound_holds_for_all_sizes() {
    for (text, most, columns) in [(PLAIN, (40, 9), None), (MIXED, (40, 30), Some(16))] {
        let program = restride_ir::text::parse(text, &restride_ops::lookup).expect("a program");
        let compiled = Compiled::new(program, None, &options(None)).expect("compiles");
        let UpperBound::Bytes(bound) = *compiled.upper_bound() else { panic!("{:?}", compiled.upper_bound()) };
        let mut instance = compiled.instance().expect("an instance");
        assert_eq!(instance.reserve().expect("memory"), bound);
        let mut largest = 0;
        for n in 2..=most.0 {
            for m in 1..=most.1 {
                let of = |sizes: &[i64], x: f32| {
                    RunValue::Tensor(RawTensor::from_slice(&vec![x; sizes.iter().product::<i64>() as usize], sizes))
                };
                let inputs = match columns {
                    None => Inputs::new([of(&[n, m], 0.5), of(&[m], 2.0)]),
                    Some(k) => Inputs::new([of(&[n, k], 0.5), of(&[m, k], 0.25)]),
                };
                let own = compiled.prepare(&inputs).expect("compiles").report().plan.arena_bytes;
                assert!(own <= bound, "{own} bytes for {n} and {m}, within {bound}");
                largest = largest.max(own);
                instance.run(&inputs, &RunOptions::default()).expect("runs");
                assert_eq!(instance.arena_bytes(), bound);
            }
        }
        // Another order of nodes, which is no part of the bound, may save some.
        assert!(largest >= bound / 4 * 3, "{largest} bytes at most, and the bound is {bound}");
    }
}

#[test]
fn no_bound_says_why() {
    let open = "symbol n in [2, inf]
graph(%x: f32[n]) {
  %a: f32[n] = aten.exp.default(%x)
  return %a
}";
    let data = "symbol u0 in [0, inf]
graph(%x: f32[8]) {
  %a: i64[u0, 1] = aten.nonzero.default(%x)
  %b: i64[u0, 1] = aten.neg.default(%a)
  return %b
}";
    for (text, why, learns) in [(open, "n has no largest value: a size of %x", 0), (data, "learns it from data", 1)] {
        let program = restride_ir::text::parse(text, &restride_ops::lookup).expect("a program");
        let compiled = Compiled::new(program, None, &options(None)).expect("compiles");
        let UpperBound::Unknown(found) = compiled.upper_bound() else { panic!("{:?}", compiled.upper_bound()) };
        assert!(found.contains(why), "{found}");
        assert_eq!(compiled.learns().len(), learns);
        let refused = compiled.instance().expect("an instance").reserve().expect_err("there is no bound");
        assert!(refused.to_string().contains(why), "{refused}");
    }
}
