//! Sequences of small programs, and of long ones.

use super::*;
use restride_ir::text::{parse, print};
use restride_ops::lookup;
use std::fmt::Write as _;

fn program(text: &str) -> Program {
    parse(text, &lookup).expect("the text is a program")
}

/// A chain of `n` values, read again in the order opposite to that in which they were made, as backward does.
fn there_and_back(n: usize, op: &str) -> Program {
    let mut text = String::from("stage: functional\ngraph(%x: f32[1000]) {\n  %v0: f32[1000] = aten.neg.default(%x)\n");
    for i in 1..n {
        let _ = writeln!(text, "  %v{i}: f32[1000] = aten.{op}.default(%v{})", i - 1);
    }
    let _ = writeln!(text, "  %w{n}: f32[1000] = aten.neg.default(%v{})", n - 1);
    for i in (0..n).rev() {
        let _ = writeln!(text, "  %w{i}: f32[1000] = aten.mul.Tensor(%w{}, %v{i})", i + 1);
    }
    let _ = writeln!(text, "  return %w0\n}}");
    program(&text)
}

#[test]
fn a_chain_read_backwards_fits_in_less() {
    let program = there_and_back(64, "exp");
    let before = modelled(&program);
    assert!(before > 60 * 4000);
    let mut last = 0;
    for share in [100, 75, 50, 30] {
        let most = before * share / 100;
        let found = recompute(&program, most);
        assert!(found.peak <= most, "{} instead of {most}", found.peak);
        let made = again(&program, &found.sequence).expect("a sequence of the program");
        assert_eq!(modelled(&made.program), found.peak, "what it says is what it is");
        assert!(made.remarks.len() >= last, "less memory is not less work");
        assert_eq!(share == 100, made.remarks.is_empty());
        last = made.remarks.len();
    }
    // A chain of n needs about the root of n, and no chain needs more runs than pairs of nodes.
    let least = recompute(&program, 0);
    assert!(least.peak < before / 3, "{} of {before}", least.peak);
}

#[test]
fn what_is_expensive_is_kept_and_what_is_cheap_goes() {
    let text = "stage: functional
graph(%x: f32[64, 64], %w: f32[64, 64]) {
  %a: f32[64, 64] = aten.mm.default(%x, %w)
  %b: f32[64, 64] = aten.exp.default(%x)
  %c: f32[64, 64] = aten.mm.default(%a, %b)
  %d: f32[64, 64] = aten.mm.default(%c, %w)
  %e: f32[64, 64] = aten.mm.default(%d, %c)
  %f: f32[64, 64] = aten.mm.default(%e, %a)
  %g: f32[64, 64] = aten.mm.default(%f, %b)
  return %g
}";
    let program = program(text);
    let found = recompute(&program, modelled(&program) - 1);
    let made = again(&program, &found.sequence).expect("a sequence of the program");
    assert!(found.peak < modelled(&program));
    let over: Vec<&str> =
        made.remarks.iter().map(|r| &*program.graph().values[r.over.expect("a value")].name).collect();
    assert_eq!(over, ["b"], "{}", print(&made.program));
}

#[test]
fn draws_are_those_of_the_node_that_was_there() {
    let text = "stage: functional
graph(%x: f32[1000]) {
  %r: f32[1000] = aten.rand_like.default(%x) !key 7
  %a: f32[1000] = aten.exp.default(%x)
  %b: f32[1000] = aten.mul.Tensor(%a, %r)
  %c: f32[1000] = aten.sin.default(%b)
  %d: f32[1000] = aten.mul.Tensor(%c, %a)
  %e: f32[1000] = aten.mul.Tensor(%d, %b)
  %f: f32[1000] = aten.mul.Tensor(%e, %r)
  return %f
}";
    let program = program(text);
    let found = recompute(&program, 0);
    let made = again(&program, &found.sequence).expect("a sequence of the program");
    let random: Vec<u32> =
        made.program.graph().ordered().filter(|(_, n)| n.op.def().random).map(|(_, n)| n.origin.key).collect();
    assert!(random.len() > 1 && random.iter().all(|k| *k == 7), "{}", print(&made.program));
}

#[test]
fn sequences_of_something_else_are_refused() {
    let text = "stage: functional
graph(%x: f32[4]) {
  %a: f32[4] = aten.exp.default(%x)
  %ok: bool[] = aten.all.default(%a)
  aten._assert_async.msg(%ok, \"no\")
  %b: f32[4] = aten.neg.default(%a)
  return %b
}";
    let program = program(text);
    let [a, ok, assert, b] = program.graph().order[..] else { panic!("four nodes") };
    let refused = |nodes: &[NodeId]| again(&program, nodes).expect_err("no sequence of it").to_string();
    assert!(refused(&[a, ok, b]).contains("leaves out a node with an effect"));
    assert!(refused(&[a, ok, assert, assert, b]).contains("moves or repeats"));
    assert!(refused(&[ok, a, assert, b]).contains("before it is made"));
    assert!(refused(&[a, ok, assert]).contains("does not make a returned value"));
    assert!(refused(&[a, ok, assert, <NodeId as restride_ir::Id>::new(9), b]).contains("not in the program"));
    let twice = again(&program, &[a, ok, assert, a, b]).expect("a node of no effect may come again");
    assert_eq!(twice.remarks.len(), 1);
    assert_eq!(twice.program.graph().order.len(), 5);
}

#[test]
fn a_long_program_takes_no_long_time() {
    let program = there_and_back(5_000, "exp");
    let start = std::time::Instant::now();
    let before = modelled(&program);
    let found = recompute(&program, before / 4);
    assert!(found.peak <= before / 4);
    assert!(found.sequence.len() < 5 * program.graph().order.len());
    let took = start.elapsed();
    println!("10,000 nodes: {took:?}");
    assert!(took.as_secs() < 120, "{took:?}");
}

#[test]
fn backward_keeps_what_is_asked_for() {
    // Forward is the first half.
    let program = there_and_back(16, "exp");
    let no = restride_ir::Binding::new();
    let all = keep(&program, 16, &no, Keep::All).expect("nothing to do");
    assert_eq!((all.again, all.bytes), (0, all.all_bytes));
    // Not the whole of forward once more, which would need as much at once as before.
    let none = keep(&program, 16, &no, Keep::None).expect("all can be made again");
    assert!(none.bytes <= all.all_bytes / 2 && none.again >= 8, "{} bytes, {} again", none.bytes, none.again);
    assert!(modelled(&none.program) <= modelled(&program) / 2, "{}", modelled(&none.program));
    let mut last = 0;
    for share in [75, 50, 25, 0] {
        let most = all.all_bytes * share / 100;
        let some = keep(&program, 16, &no, Keep::Bytes(most)).expect("all can be made again");
        assert!(some.bytes <= most && some.bytes > most - 4096);
        assert!(some.again > last);
        last = some.again;
    }
}

#[test]
fn what_is_random_is_kept_for_backward() {
    let text = "stage: functional
graph(%x: f32[1024]) {
  %r: f32[1024] = aten.rand_like.default(%x)
  %a: f32[1024] = aten.mul.Tensor(%x, %r)
  %b: f32[1024] = aten.exp.default(%a)
  %g: f32[1024] = aten.mul.Tensor(%b, %a)
  %h: f32[1024] = aten.mul.Tensor(%g, %b)
  return %h
}";
    let program = program(text);
    let no = restride_ir::Binding::new();
    let none = keep(&program, 3, &no, Keep::None).expect("what can be is made again");
    let draws = none.program.graph().ordered().filter(|(_, n)| n.op.def().random).count();
    assert_eq!((none.all_bytes, draws), (8192, 1));
    // Neither %a nor %b, but %r, which they are made of.
    let some = keep(&program, 3, &no, Keep::Bytes(4096)).expect("%r stays");
    assert_eq!((some.bytes, some.again), (4096, 1));
    // %a in place of %r is no more.
    let error = keep(&program, 3, &no, Keep::Bytes(100)).expect_err("%r or %a stays").to_string();
    assert!(error.contains("%a (4096 bytes)"), "{error}");
}

/// A chain of matrix products with something pointwise between them, then the same values read backwards.
fn layers(n: usize, middle: usize) -> (Program, usize) {
    let mut text = format!("stage: functional\ngraph(%x: f32[64, {middle}], %w: f32[{middle}, {middle}]) {{\n");
    let ty = format!("f32[64, {middle}]");
    for i in 0..n {
        let from = if i == 0 { "x".into() } else { format!("b{}", i - 1) };
        let _ =
            writeln!(text, "  %a{i}: {ty} = aten.mm.default(%{from}, %w)\n  %b{i}: {ty} = aten.tanh.default(%a{i})");
    }
    let _ = writeln!(text, "  %g{n}: {ty} = aten.neg.default(%b{})", n - 1);
    for i in (0..n).rev() {
        let _ = writeln!(text, "  %h{i}: {ty} = aten.tanh_backward.default(%g{}, %b{i})", i + 1);
        let _ = writeln!(text, "  %k{i}: {ty} = aten.mul.Tensor(%h{i}, %a{i})");
        let _ = writeln!(text, "  %g{i}: {ty} = aten.mm.default(%k{i}, %w)");
    }
    let _ = writeln!(text, "  return %g0\n}}");
    (program(&text), 2 * n)
}

#[test]
fn only_what_is_cheap_is_computed_again_unasked() {
    // Of wide layers the pointwise part is a small part of the work.
    let (wide, forward) = layers(12, 1024);
    let kept = keep(&wide, forward, &restride_ir::Binding::new(), Keep::Auto).expect("sizes are known");
    assert!(kept.again > 0 && kept.bytes < kept.all_bytes, "{kept:?}");
    assert!(modelled(&kept.program) < modelled(&wide));
    let count = |p: &Program, op: &str| p.graph().ordered().filter(|(_, n)| n.op.name() == op).count();
    assert_eq!(count(&kept.program, "aten.mm.default"), count(&wide, "aten.mm.default"));
    assert!(count(&kept.program, "aten.tanh.default") > 12);
    let work = |p: &Program| -> i64 { cost::costs(p.graph(), &MemoryModel::new(p.graph())).iter().sum() };
    assert!(work(&kept.program) <= work(&wide) / 30 * 31);
    // In narrow programs it is most of the memory.
    let (narrow, forward) = layers(12, 4);
    let kept = keep(&narrow, forward, &restride_ir::Binding::new(), Keep::Auto).expect("sizes are known");
    assert!(work(&kept.program) <= work(&narrow) / 30 * 31, "{} nodes", kept.again);
    let none = keep(&narrow, forward, &restride_ir::Binding::new(), Keep::None).expect("sizes are known");
    assert!(none.again > kept.again && modelled(&none.program) < modelled(&narrow));
}

#[test]
fn memory_under_a_view_between_learnt_numbers_is_kept() {
    let text = "stage: functional
symbol u0 in [1, 1000]
graph(%x: f32[1000], %n: i64[]) {
  %c: f32[1000] = aten.exp.default(%x)
  %u: Sym(u0) = aten.item.default(%n)
  %s: f32[u0] = aten.slice.Tensor(%c, 0, None, u0)
  %a: f32[u0] = aten.neg.default(%s)
  %b: f32[u0] = aten.mul.Tensor(%a, %s)
  return %b
}
";
    for at in [None, Some(7)] {
        let sizes = at.map(|n| (restride_ir::Symbol::new("u0", Some(1), Some(1000)), restride_ir::Scalar::Int(n)));
        let sizes: restride_ir::Binding = sizes.into_iter().collect();
        for how in [Keep::Auto, Keep::None] {
            keep(&program(text), 4, &sizes, how).expect("the slice stays where it is");
        }
    }
}
