//! Placements of bodies are checked like those that call them.

use restride_check::FaultKind;
use restride_ir::{Buffer, BufferKind, GraphId, Id, Placement, Program, Step};
use restride_passes::place::{PlaceOptions, place};

const LOOP: &str = "stage: functional
graph(%i: i64[], %x: f32[2, 3], %w: f32[2, 3]) {
  %n: i64[], %y: f32[2, 3] = higher_order.while_loop(@more, @body, [%i, %x], [%w])
  %z: f32[2, 3] = aten.neg.default(%y)
  return %n, %z
}
graph @more(%i: i64[], %x: f32[2, 3], %w: f32[2, 3]) {
  %lt: bool[] = aten.lt.Scalar(%i, 3)
  return %lt
}
graph @body(%i: i64[], %x: f32[2, 3], %w: f32[2, 3]) {
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
fn a_body_replaces_what_is_carried() {
    let (program, placement) = placed();
    let mut bad = placement.clone();
    let inner = &mut bad.nested.get_mut(&body(&program)).unwrap().placement;
    let output = inner.buffers.iter().find(|(_, b)| b.kind == BufferKind::Input(1)).unwrap().1.bytes;
    let elsewhere = inner.buffers.push(Buffer { kind: BufferKind::Arena, bytes: output });
    let last = inner.steps.iter_mut().rev().find(|s| matches!(s, Step::Run { .. })).unwrap();
    let Step::Run { writes, .. } = last else { unreachable!() };
    writes[0].as_mut().unwrap().buffer = elsewhere;
    assert_eq!(rejects(&program, &bad), [FaultKind::NotThere]);
    // The call and its body must mean the same inputs.
    let mut bad = placement.clone();
    bad.nested.get_mut(&body(&program)).unwrap().carried = 1;
    assert!(rejects(&program, &bad).contains(&FaultKind::Malformed));
}

const OVER: &str = "stage: functional
graph(%i: i64[], %x: f32[2, 3]) {
  %a: f32[2, 3] = aten.neg.default(%x)
  %b: f32[2, 3] = aten.relu.default(%x)
  %n: i64[], %y: f32[2, 3] = higher_order.while_loop(@more, @body, [%i, %a], [%b])
  return %n, %y
}
graph @more(%i: i64[], %x: f32[2, 3], %w: f32[2, 3]) {
  %lt: bool[] = aten.lt.Scalar(%i, 3)
  return %lt
}
graph @body(%i: i64[], %x: f32[2, 3], %w: f32[2, 3]) {
  %next: i64[] = aten.add.Tensor(%i, 1)
  %c: f32[2, 3] = aten.mul.Tensor(%x, %w)
  return %next, %c
}";

#[test]
fn a_loop_takes_over_what_it_carries_and_nothing_else() {
    let program = restride_ir::text::parse(OVER, &restride_ops::lookup).unwrap();
    let placement = place(&program, &PlaceOptions::default()).unwrap().placement;
    assert_eq!(restride_check::placement(&program, &placement), Ok(()));
    let step = placement.steps.len() - 1;
    let Step::Run { reads, writes, .. } = &placement.steps[step] else { panic!("the loop is the last step") };
    assert_eq!(reads[1], writes[1], "the loop updates what it is given in its memory");
    let mut bad = placement.clone();
    let Step::Run { reads, writes, .. } = &mut bad.steps[step] else { unreachable!() };
    writes[1] = reads[2].clone();
    assert!(rejects(&program, &bad).contains(&FaultKind::Overlap));
    // Nor where what it is given is given to it once more.
    let mut bad = placement.clone();
    let Step::Run { reads, .. } = &mut bad.steps[step] else { unreachable!() };
    reads[2] = reads[1].clone();
    assert!(rejects(&program, &bad).contains(&FaultKind::Overlap));
}

#[test]
fn a_body_does_not_write_its_inputs() {
    let (program, placement) = placed();
    let mut bad = placement.clone();
    let inner = &mut bad.nested.get_mut(&body(&program)).unwrap().placement;
    let input = inner.buffers.iter().find(|(_, b)| b.kind == BufferKind::Input(2)).unwrap().0;
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
    // A value in the scratch.
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
