//! Placements of bodies are judged like those that call them.

use restride_check::FaultKind;
use restride_ir::{BufferKind, GraphId, Id, Placement, Program, Step};
use restride_passes::place::{PlaceOptions, place};

const LOOP: &str = "stage: functional
graph(%i: i64[], %x: f32[2, 3], %w: f32[3]) {
  %n: i64[], %y: f32[2, 3] = higher_order.while_loop(@more, @body, [%i, %x], [%w])
  %z: f32[2, 3] = aten.neg.default(%y)
  return %n, %z
}
graph @more(%i: i64[], %x: f32[2, 3], %w: f32[3]) {
  %lt: bool[] = aten.lt.Scalar(%i, 3)
  return %lt
}
graph @body(%i: i64[], %x: f32[2, 3], %w: f32[3]) {
  %next: i64[] = aten.add.Tensor(%i, 1)
  %a: f32[2, 3] = aten.mul.Tensor(%x, %w)
  %b: f32[2, 3] = aten.relu.default(%a)
  %c: f32[2, 3] = aten.add.Tensor(%b, %x)
  return %next, %c
}";

fn placed() -> (Program, Placement) {
    let program = restride_ir::text::parse(LOOP, &restride_ops::lookup).unwrap();
    let placement = place(&program, &PlaceOptions { reuse: false, ..PlaceOptions::default() }).unwrap().placement;
    assert_eq!(restride_check::placement(&program, &placement), Ok(()));
    (program, placement)
}

fn rejects(program: &Program, placement: &Placement) -> Vec<FaultKind> {
    let faults = restride_check::placement(program, placement).expect_err("this is wrong");
    faults.iter().map(|f| f.kind).collect()
}

fn body(program: &Program) -> GraphId {
    program.graphs.iter().find(|(_, g)| &*g.name == "body").unwrap().0
}

#[test]
fn every_step_of_a_body_is_needed() {
    let (program, placement) = placed();
    let steps = placement.nested[&body(&program)].placement.steps.len();
    assert!(steps >= 4);
    for at in 0..steps {
        let mut bad = placement.clone();
        bad.nested.get_mut(&body(&program)).unwrap().placement.steps.remove(at);
        rejects(&program, &bad);
    }
}

#[test]
fn a_body_does_not_write_its_inputs() {
    let (program, placement) = placed();
    let mut bad = placement.clone();
    let inner = &mut bad.nested.get_mut(&body(&program)).unwrap().placement;
    let input = inner.buffers.iter().find(|(_, b)| b.kind == BufferKind::Input(1)).unwrap().0;
    let last = inner.steps.iter_mut().rev().find(|s| matches!(s, Step::Run { .. })).unwrap();
    let Step::Run { writes, .. } = last else { unreachable!() };
    writes[0].as_mut().unwrap().buffer = input;
    assert!(rejects(&program, &bad).contains(&FaultKind::ReadOnly));
}

#[test]
fn a_call_needs_its_bodies_and_its_working_memory() {
    let (program, placement) = placed();
    let mut bad = placement.clone();
    bad.nested.remove(&body(&program));
    assert!(rejects(&program, &bad).contains(&FaultKind::Malformed));
    let (&node, &scratch) = placement.scratch.iter().next().unwrap();
    let mut bad = placement.clone();
    bad.scratch.remove(&node);
    assert!(rejects(&program, &bad).contains(&FaultKind::Outside));
    let mut bad = placement.clone();
    bad.buffers[scratch].bytes -= 64;
    assert!(rejects(&program, &bad).contains(&FaultKind::Outside));
    // A value in the working memory.
    let mut bad = placement.clone();
    for step in &mut bad.steps {
        if let Step::Run { node: n, writes, .. } = step
            && *n != node
        {
            writes.iter_mut().flatten().for_each(|p| p.buffer = scratch);
        }
    }
    assert!(rejects(&program, &bad).contains(&FaultKind::Malformed), "{}", node.index());
}
