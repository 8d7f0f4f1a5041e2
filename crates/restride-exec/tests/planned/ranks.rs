//! Exchanges in flight: [`EchoRank`] spoils a result when the exchange starts, and reads the operand and writes the result when it is
//! waited for. A step between that uses their memory changes results.

use super::*;
use restride_exec::collective::{EchoRank, with_engine};
use restride_passes::waits::started;
use std::sync::Arc;

fn agree_late(text: &str, inputs: &[RawTensor]) -> (Program, Placed) {
    let plain = program(text);
    let split = started(plain.clone());
    let mut first = None;
    let want_inputs = clone_inputs(inputs);
    let mut state = State::new(&plain).unwrap();
    let echo = || Some(Arc::new(EchoRank::default()) as _);
    let want = with_engine(echo(), || interpret(&plain, &want_inputs, &mut state, &RunOptions::default()).unwrap());
    for options in options() {
        let placed = place(&split, &options).unwrap();
        let shown = || {
            let text = restride_ir::text::print_placed(&split, &placed.placement, None, &Default::default());
            format!("{options:?}\n{text}")
        };
        let offsets = plan(split.graph(), &placed.placement, &PlanOptions::default());
        let runnable = Runnable::checked(&split, placed.placement.clone(), offsets)
            .unwrap_or_else(|e| panic!("{e}\n{}", shown()))
            .poisoned();
        let inputs = clone_inputs(inputs);
        let mut state = State::new(&split).unwrap();
        let have = with_engine(echo(), || run(&split, &runnable, &mut ByteArena::default(), &inputs, &mut state));
        compare(&have, &want, &|what| panic!("{what}\n{}", shown()));
        first.get_or_insert(placed);
    }
    (split, first.unwrap())
}

#[test]
fn a_sum_of_all_ranks_is_computed_in_the_operand() {
    let text = r#"stage: functional
graph(%x: f32[4]) {
  %y: f32[4] = aten.mul.Tensor(%x, 3)
  %s: f32[4] = _c10d_functional.all_reduce.default(%y, "sum", "0")
  %n: f32[4] = aten.neg.default(%x)
  %m: f32[4] = aten.mul.Tensor(%n, %s)
  return %m
}"#;
    let (program, placed) = agree_late(text, &[floats(&[4])]);
    assert_eq!(decided(&program, &placed, "s", RemarkKind::ReuseOperand), Some(Reason::Taken));
    assert_eq!(moves(&placed), 0);
}

#[test]
fn an_operand_stays_until_the_wait() {
    // %y dies at the gather, and %n may not take over its memory before the wait; %x is written after it.
    let text = r#"stage: functional
output 1: mutation of %x
graph(%x: f32[4]) {
  %y: f32[4] = aten.mul.Tensor(%x, 3)
  %g: f32[8] = _c10d_functional.all_gather_into_tensor.default(%y, 2, "0")
  %h: f32[8] = _c10d_functional.all_gather_into_tensor.default(%x, 2, "0")
  %n: f32[4] = aten.neg.default(%y)
  %k: f32[4] = aten.relu.default(%n)
  %l: f32[4] = aten.exp.default(%k)
  %b: f32[8] = aten.cat.default([%l, %n])
  %a: f32[8] = aten.add.Tensor(%g, %b)
  %c: f32[8] = aten.add.Tensor(%a, %h)
  %z: f32[4] = aten.slice.Tensor(%c, 0, 0, 4)
  %w: f32[4] = aten.add.Tensor(%x, %z)
  return %a, %w
}"#;
    agree_late(text, &[floats(&[4])]);
}

#[test]
fn results_come_straight_into_their_regions() {
    let text = r#"stage: functional
graph(%x: f32[2, 3], %base: f32[8, 3]) {
  %y: f32[2, 3] = aten.relu.default(%x)
  %g: f32[4, 3] = _c10d_functional.all_gather_into_tensor.default(%y, 2, "0")
  %n: f32[4, 3] = aten.cat.default([%x, %x])
  %c: f32[8, 3] = aten.cat.default([%n, %g])
  %r: f32[4, 3] = _c10d_functional.reduce_scatter_tensor.default(%c, "avg", 2, "0")
  %s: f32[8, 3] = aten.slice_scatter.default(%c, %r, 0, 2, 6)
  return %s
}"#;
    let (program, placed) = agree_late(text, &[floats(&[2, 3]), floats(&[8, 3])]);
    let buffer = |name: &str| {
        let (v, _) = program.graph().values.iter().find(|(_, v)| &*v.name == name).unwrap();
        placed.placement.places[v].as_ref().unwrap().buffer
    };
    // The gather is a part of the `cat`; the mean is no part of its own operand.
    assert_eq!(buffer("g"), buffer("c"));
    assert_ne!(buffer("r_done"), buffer("s"));
}

#[test]
fn exchanges_of_views_casts_and_bodies() {
    let text = r#"stage: functional
graph(%x: f32[4, 6], %p: bool[]) {
  %m: f32[4, 6] = aten.mul.Tensor(%x, 2)
  %t: f32[6, 4][1, 6] = aten.t.default(%m)
  %s: f32[6, 4] = _c10d_functional.all_reduce.default(%t, "sum", "0")
  %v: f32[4][6]+1 = aten.select.int(%m, 1, 1)
  %b: f32[4] = _c10d_functional.broadcast.default(%v, 1, "0")
  %d: f32[4, 6] = aten.select_scatter.default(%m, %b, 1, 1)
  %e: f32[4, 6] = _c10d_functional.all_to_all_single.default(%d, [2, 2], [2, 2], "0")
  %unread: f32[4, 6] = _c10d_functional.all_reduce.default(%d, "max", "1")
  %u: f32[4, 6][1, 4] = aten.t.default(%s)
  %f: f32[4, 6] = higher_order.cond(%p, @yes, @no, [%e, %u])
  return %f, %b
}
graph @yes(%a: f32[4, 6], %b: f32[4, 6][1, 4]) {
  %c: f32[4, 6] = aten.add.Tensor(%a, %b)
  %d: f32[4, 6] = _c10d_functional.all_reduce.default(%c, "avg", "0")
  %e: f32[4, 6] = aten.mul.Tensor(%c, %d)
  return %e
}
graph @no(%a: f32[4, 6], %b: f32[4, 6][1, 4]) {
  %c: f32[4, 6] = aten.sub.Tensor(%a, %b)
  return %c
}"#;
    agree_late(text, &[floats(&[4, 6]), bool_scalar(true)]);
    agree_late(text, &[floats(&[4, 6]), bool_scalar(false)]);
}
