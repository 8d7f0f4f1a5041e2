//! `explain` reports the placement's decisions and the report's counts.

use restride::{CompileOptions, Compiled, Explanation, FuseOptions, Inputs, OpenOptions, Program, RemarkKind, Why};
use std::path::Path;

fn example(name: &str) -> (Program, Compiled, Inputs) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/examples").join(name);
    let program = restride::open(&path, &OpenOptions::default()).expect("the example");
    let inputs = Inputs::from_samples(&program).expect("sample inputs").expect("that can be read");
    let compiled = Compiled::new(program.clone(), Some(&inputs), &CompileOptions::default()).expect("it compiles");
    (program, compiled, inputs)
}

const EXAMPLES: [&str; 4] = ["batchnorm_train.pt2", "box_decode.pt2", "llama_decode.pt2", "vit_small.pt2"];

#[test]
fn totals_are_those_of_the_report() {
    for name in EXAMPLES {
        let (_, compiled, inputs) = example(name);
        let (all, report) = (compiled.prepare(&inputs).unwrap().explain(), compiled.prepare(&inputs).unwrap().report());
        let bytes = |list: &[restride::Decision]| list.iter().map(|d| d.bytes).sum::<i64>();
        assert_eq!((all.copies.len(), all.declined.len()), (report.placed.copies, report.placed.missed), "{name}");
        assert_eq!(all.copies.iter().map(|c| c.bytes).sum::<i64>(), report.placed.copy_bytes, "{name}");
        assert_eq!(bytes(&all.declined), report.placed.missed_bytes, "{name}");
        assert!(!all.done.is_empty(), "{name}: nothing was done in place");
    }
}

#[test]
fn rows_are_sorted_by_bytes() {
    for name in EXAMPLES {
        let (_, compiled, inputs) = example(name);
        let all = compiled.prepare(&inputs).unwrap().explain();
        assert!(all.done.is_sorted_by(|a, b| a.bytes >= b.bytes), "{name}");
        assert!(all.declined.is_sorted_by(|a, b| a.bytes >= b.bytes), "{name}");
        assert!(all.copies.is_sorted_by(|a, b| a.bytes >= b.bytes), "{name}");
    }
}

#[test]
fn every_node_can_be_asked_for_at_every_stage() {
    for name in EXAMPLES {
        let (program, compiled, inputs) = example(name);
        let all = compiled.prepare(&inputs).unwrap().explain();
        let stages = [&program, compiled.functional()];
        for stage in stages {
            for (_, value) in stage.graph().values.iter() {
                for asked in [value.name.to_string(), format!("%{}", value.name)] {
                    let one = all.about(&asked, &stages).unwrap_or_else(|e| panic!("{name}, {asked}: {e}"));
                    assert!(one.done.iter().all(|d| all.done.contains(d)));
                    assert!(one.declined.iter().all(|d| all.declined.contains(d)));
                    assert!(one.copies.iter().all(|c| all.copies.contains(c)));
                }
            }
        }
    }
}

/// Together, what is said of all nodes is all that is said.
#[test]
fn nothing_is_said_of_no_node() {
    let (program, compiled, inputs) = example("box_decode.pt2");
    let all = compiled.prepare(&inputs).unwrap().explain();
    let stages = [&program, compiled.functional()];
    let names: Vec<_> = program.graph().values.iter().map(|(_, v)| v.name.clone()).collect();
    let each: Vec<Explanation> = names.iter().map(|n| all.about(n, &stages).unwrap()).collect();
    let whole = (all.done.len(), all.declined.len(), all.copies.len());
    assert!(each.iter().all(|e| (e.done.len(), e.declined.len(), e.copies.len()) < whole), "one node is all of them");
    assert!(all.done.iter().all(|d| each.iter().any(|e| e.done.contains(d))));
    assert!(all.declined.iter().all(|d| each.iter().any(|e| e.declined.contains(d))));
    assert!(all.copies.iter().all(|c| each.iter().any(|e| e.copies.contains(c))));
}

#[test]
fn names_that_there_are_not_get_near_ones() {
    let (program, compiled, inputs) = example("box_decode.pt2");
    let stages = [&program, compiled.functional()];
    let all = compiled.prepare(&inputs).unwrap().explain();
    let e = all.about("clampp", &stages).unwrap_err().to_string();
    assert!(e.contains("no value, node or operator \"clampp\"") && e.contains("similar names: clamp"), "{e}");
    let e = all.about("%slice_99", &stages).unwrap_err().to_string();
    assert!(e.contains("slice_"), "{e}");
    let e = all.about("nothing of the kind", &stages).unwrap_err().to_string();
    assert!(e.contains("restride show prints the names"), "{e}");
    // An operator is a name, too.
    let slices = all.about("aten.slice.Tensor", &stages).unwrap();
    assert!(slices.done.iter().any(|d| d.site.op == "aten.slice.Tensor"));
}

#[test]
fn a_move_says_what_was_declined() {
    let mut seen = 0;
    for name in EXAMPLES {
        let (_, compiled, inputs) = example(name);
        for c in compiled.prepare(&inputs).unwrap().explain().copies.iter() {
            let Why::Declined(d) = &c.why else { panic!("{name}, {}: {}", c.values.join(", "), c.why()) };
            assert!(c.why().contains(&d.why()), "{}", c.why());
            seen += 1;
        }
    }
    assert!(seen > 0, "no example moves anything");
}

fn explained(text: &str) -> (Program, Compiled, Explanation) {
    let program = restride_ir::text::parse(text, &restride_ops::lookup).expect("a program");
    let inputs = restride::random_inputs(&program, 1).expect("inputs");
    let options = CompileOptions { fuse: FuseOptions::none(), ..CompileOptions::default() };
    let compiled = Compiled::new(program.clone(), Some(&inputs), &options).expect("it compiles");
    let all = compiled.prepare(&inputs).unwrap().explain();
    (program, compiled, all)
}

/// A fused node is found by what is inside of it; a producer that stayed out says why.
#[test]
fn fused_nodes_are_explained_by_what_is_inside() {
    let text = "graph(%x: f32[4]) {
          %a: f32[4] = aten.mul.Tensor(%x, 2)
          %f: f32[4] = aten.flip.default(%a, [0])
          %b: f32[4] = aten.add.Tensor(%a, %f)
          %c: f32[4] = aten.exp.default(%b)
          return %c
        }";
    let program = restride_ir::text::parse(text, &restride_ops::lookup).expect("a program");
    let inputs = restride::random_inputs(&program, 1).expect("inputs");
    let options = CompileOptions { fuse: FuseOptions::default(), ..CompileOptions::default() };
    let compiled = Compiled::new(program.clone(), Some(&inputs), &options).expect("it compiles");
    let all = compiled.prepare(&inputs).unwrap().explain();
    let b = all.about("b", &[&program, compiled.functional()]).unwrap();
    let taken = b.done.iter().find(|d| d.kind == RemarkKind::Fuse).expect("it is fused");
    assert_eq!(taken.site.to_string(), "%c = restride.fused.default of aten.add.Tensor, aten.exp.default");
    assert_eq!(taken.bytes, 16);
    let a = all.about("a", &[&program, compiled.functional()]).unwrap();
    let out = a.declined.iter().find(|d| d.kind == RemarkKind::Fuse).expect("it stays out");
    assert!(out.why().starts_with("still read by %f = aten.flip.default"), "{}", out.why());
}

/// A copy that is none reads nothing: who looks through it does.
#[test]
fn readers_are_named_behind_what_costs_nothing() {
    let (program, compiled, all) = explained(
        "graph(%x: f32[4]) {
          %a: f32[4] = aten.mul.Tensor(%x, 2)
          %b: f32[4] = aten.add.Tensor(%a, 1)
          %v: f32[4] = aten.clone.default(%a)
          %c: f32[4] = aten.exp.default(%v)
          %d: f32[4] = aten.flip.default(%b, [0])
          %e: f32[4] = aten.flip.default(%c, [0])
          return %d, %e
        }",
    );
    let b = all.about("b", &[&program, compiled.functional()]).unwrap();
    let [missed] = &b.declined[..] else { panic!("{b:?}") };
    assert_eq!(missed.why(), "still read by %c = aten.exp.default, through %v");
    // Whoever stands in the way is told so, too.
    for blocking in ["c", "v"] {
        let of = all.about(blocking, &[&program, compiled.functional()]).unwrap();
        assert!(of.declined.contains(missed), "{blocking}: {of:?}");
    }
}

#[test]
fn bodies_are_explained_by_name() {
    let text = "graph(%p: bool[], %x: f32[4]) {
          %r: f32[4] = higher_order.cond(%p, @yes, @no, [%x])
          return %r
        }
        graph @yes(%x: f32[4]) {
          %b: f32[4] = aten.neg.default(%x)
          %c: f32[4] = aten.add.Tensor(%b, 1)
          %d: f32[4] = aten.flip.default(%c, [0])
          return %d
        }
        graph @no(%x: f32[4]) {
          %h: f32[2] = aten.slice.Tensor(%x, 0, 0, 2)
          %e: f32[4] = aten.cat.default([%h, %h])
          return %e
        }";
    let (program, compiled, all) = explained(text);
    let c = all.about("c", &[&program, compiled.functional()]).unwrap();
    let taken: Vec<_> = c.done.iter().map(|d| (d.site.body.is_some(), d.kind, d.over.as_deref())).collect();
    assert_eq!(taken, [(true, RemarkKind::ReuseOperand, Some("%b"))]);
    // Both halves are copied, as they are in the caller's memory.
    let e = all.about("e", &[&program, compiled.functional()]).unwrap();
    assert!(e.copies.len() == 2 && e.copies.iter().all(|c| c.values == ["h"] && c.why != Why::Unknown), "{e:?}");
    let site = e.copies[0].site.as_ref().expect("the cat");
    assert!(site.to_string().starts_with("%e = aten.cat.default in @"), "{site}");
}
