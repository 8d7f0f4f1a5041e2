//! The caller's memory: inputs that get new contents, outputs, views of both.

use super::*;
use restride_exec::Addresses;
use restride_exec::run::BoundRun;
use restride_ir::{Id, Layout as L};
use std::sync::Arc;

/// A sum that is the new content of its first operand.
const SUM_IN_PLACE: &str = "stage: functional
output 0: mutation of %x
graph(%x: f32[4], %y: f32[4]) {
  %a: f32[4] = aten.add.Tensor(%x, %y)
  return %a
}";

/// The planned program, with all of the placement's switches on.
fn planned(program: &Program) -> Runnable {
    let placed = place(program, &PlaceOptions::default()).expect("places");
    let offsets = plan(program.graph(), &placed.placement, &PlanOptions::default());
    Runnable::checked(program, placed.placement, offsets).expect("runs")
}

#[test]
fn a_new_content_is_computed_in_the_input() {
    let text = "stage: functional
output 0: mutation of %x
graph(%x: f32[4], %y: f32[4]) {
  %a: f32[4] = aten.add.Tensor(%x, %y)
  %b: f32[4] = aten.relu.default(%a)
  return %b
}";
    let (_, placed) = agree(text, &[floats(&[4]), floats(&[4])]);
    assert_eq!((moves(&placed), arena_buffers(&placed)), (0, 0));
}

#[test]
fn a_new_content_waits_for_readers_of_the_old() {
    let text = "stage: functional
output 0: mutation of %x
graph(%x: f32[4], %y: f32[4]) {
  %a: f32[4] = aten.add.Tensor(%x, %y)
  %b: f32[4] = aten.mul.Tensor(%a, %x)
  return %a, %b
}";
    let (program, placed) = agree(text, &[floats(&[4]), floats(&[4])]);
    let reason = decided(&program, &placed, "a", RemarkKind::WriteBack);
    assert!(matches!(reason, Some(Reason::StillRead { by: Some(_) })), "{reason:?}");
    assert_eq!(moves(&placed), 1);
}

#[test]
fn inputs_change_places() {
    let swap = "stage: functional
output 0: mutation of %x
output 1: mutation of %y
graph(%x: f32[2], %y: f32[2]) {
  return %y, %x
}";
    let (_, placed) = agree(swap, &[floats(&[2]), strided(&[2], &[1], 1)]);
    // A cycle needs one copy aside.
    assert_eq!((moves(&placed), arena_buffers(&placed)), (3, 1));
    let rotate = "stage: functional
output 0: mutation of %x
output 1: mutation of %y
output 2: mutation of %z
graph(%x: f32[2], %y: f32[2], %z: f32[2]) {
  %s: f32[2] = aten.add.Tensor(%x, %z)
  return %y, %z, %s
}";
    agree(rotate, &[floats(&[2]), strided(&[2], &[1], 1), strided(&[2], &[1], 3)]);
}

#[test]
fn a_new_content_that_is_a_view_of_the_old() {
    // Overlapping in part: read whole before it is written.
    let text = "stage: functional
output 0: mutation of %x
graph(%x: f32[3, 3]) {
  %t: f32[3, 3][1, 3] = aten.t.default(%x)
  return %t
}";
    agree(text, &[floats(&[3, 3])]);
}

#[test]
fn strided_inputs_and_offsets() {
    let text = "output 0: mutation of %x
graph(%x: f32[3, 2][5, 2]+3, %y: f32[2]) {
  %a: f32[3, 2][5, 2]+3 = aten.add_.Tensor(%x, %y)
  %s: f32[2][2]+8 = aten.select.int(%a, 0, 1)
  %m: f32[2][2]+8 = aten.mul_.Tensor(%s, 3)
  %o: f32[3, 2] = aten.relu.default(%x)
  return %o
}"
    .replace("output 0: mutation of %x\n", "");
    agree(&text, &[strided(&[3, 2], &[5, 2], 3), floats(&[2])]);
    // Elsewhere in its storage than declared.
    agree(&text, &[strided(&[3, 2], &[5, 2], 7), floats(&[2])]);
}

#[test]
fn writes_through_views_of_fresh_memory() {
    let text = "graph(%x: f32[4, 6], %y: f32[4]) {
  %a: f32[4, 6] = aten.mul.Tensor(%x, 2)
  %c: f32[4][6]+2 = aten.select.int(%a, 1, 2)
  %w: f32[4][6]+2 = aten.copy_.default(%c, %y)
  %d: f32[4, 3][6, 2] = aten.slice.Tensor(%a, 1, 0, 6, 2)
  %e: f32[4, 3][6, 2] = aten.neg_.default(%d)
  %f: f32[6, 4][1, 6] = aten.t.default(%a)
  return %a, %f, %d
}";
    agree(text, &[floats(&[4, 6]), floats(&[4])]);
}

#[test]
fn outputs_that_are_views_of_inputs() {
    let text = "graph(%x: f32[4, 6], %y: f32[4]) {
  %c: f32[4][6]+2 = aten.select.int(%x, 1, 2)
  %w: f32[4][6]+2 = aten.add_.Tensor(%c, %y)
  %t: f32[6, 4][1, 6] = aten.t.default(%x)
  return %t, %c, %y
}";
    agree(text, &[floats(&[4, 6]), floats(&[4])]);
}

#[test]
fn views_of_inputs_that_lie_elsewhere() {
    let text = "graph(%x: f32[2, 3]) {
  %t: f32[3, 2][1, 3] = aten.t.default(%x)
  return %t
}";
    let x = strided(&[2, 3], &[3, 1], 4);
    agree(text, std::slice::from_ref(&x));
    // Both ways agree on its offset: the input's.
    let program = program(text);
    let inputs = clone_inputs(std::slice::from_ref(&x));
    let out = interpret(&program, &inputs, &mut State::new(&program).unwrap(), &RunOptions::default()).unwrap();
    let t = out.values[0].tensor().unwrap();
    assert_eq!((t.layout().offset, t.get(&[2, 1])), (4, x.get(&[1, 2])));
}

#[test]
fn one_value_as_several_outputs() {
    let text = "stage: functional
output 1: mutation of %x
graph(%x: f32[4]) {
  %a: f32[4] = aten.mul.Tensor(%x, 2)
  return %a, %a, %a
}";
    agree(text, &[floats(&[4])]);
}

#[test]
fn nothing_to_compute() {
    agree("stage: functional\ngraph(%x: f32[4]) {\n  return %x\n}", &[floats(&[4])]);
    agree(
        "stage: functional\ngraph(%x: f32[0, 3]) {\n  %a: f32[0, 3] = aten.mul.Tensor(%x, 2)\n  %c: f32[0, 6] = aten.cat.default([%a, %a], 1)\n  return %c\n}",
        &[floats(&[0, 3])],
    );
}

#[test]
fn several_results_of_one_kernel() {
    let text = "stage: functional
output 0: mutation of %x
graph(%x: f32[4, 3], %y: i64[4]) {
  %v: f32[4], %i: i64[4] = aten.max.dim(%x, 1)
  %s: f32[4, 3] = aten.mul.Tensor(%x, 2)
  %j: i64[4] = aten.add.Tensor(%i, %y)
  return %s, %v, %j
}";
    if restride_ops::lookup("aten.max.dim").is_some_and(|o| o.can_run()) {
        agree(text, &[floats(&[4, 3]), RawTensor::from_slice(&[1i64, 2, 3, 4], &[4])]);
    }
}

#[test]
fn inputs_that_do_not_fit_are_refused_before_anything_is_written() {
    let program = program(SUM_IN_PLACE);
    let runnable = planned(&program);
    let x = floats(&[4]);
    let before = x.to_elements::<f32>();
    let run = |y: RunValue| {
        let e = runnable.run(&mut ByteArena::default(), &[x.clone().into(), y], RunCtx::default()).unwrap_err();
        assert_eq!(x.to_elements::<f32>(), before);
        e.to_string()
    };
    assert!(run(floats(&[5]).into()).contains("input y"), "{}", run(floats(&[5]).into()));
    assert!(run(strided(&[4], &[2], 0).into()).contains("strides"));
    assert!(run(RunValue::None).contains("must be a tensor"));
    assert!(run(RawTensor::zeros(DType::F64, Layout::contiguous(&[4])).into()).contains("f64"));
    let few = runnable.run(&mut ByteArena::default(), &[x.clone().into()], RunCtx::default()).unwrap_err();
    assert!(few.to_string().contains("1 inputs are given"), "{few}");
}

#[test]
fn steps_outside_of_their_memory_are_refused() {
    let text = "stage: functional
graph(%x: f32[4]) {
  %a: f32[4] = aten.neg.default(%x)
  %b: f32[4] = aten.exp.default(%a)
  return %b
}";
    let program = program(text);
    let placed =
        place(&program, &PlaceOptions { reuse: false, boundary: false, ..PlaceOptions::default() }).unwrap().placement;
    let offsets = plan(program.graph(), &placed, &PlanOptions::default());
    // SAFETY: what is made here is not run.
    let made =
        |p: &restride_ir::Placement, o: &restride_ir::Plan| unsafe { Runnable::new(&program, p.clone(), o.clone()) };
    let refuse = |p: &restride_ir::Placement, o: &restride_ir::Plan| match made(p, o) {
        Ok(_) => panic!("this is taken: {p:?}"),
        Err(e) => e.to_string(),
    };
    assert!(made(&placed, &offsets).is_ok());
    let mut far = placed.clone();
    for step in &mut far.steps {
        if let Step::Run { writes, .. } = step {
            writes[0].as_mut().unwrap().layout = L::strided(&[4], &[1], 13);
        }
    }
    assert!(refuse(&far, &offsets).contains("leaves its buffer"), "{}", refuse(&far, &offsets));
    let mut out = offsets.clone();
    let arena = placed.buffers.iter().find(|(_, b)| b.kind == restride_ir::BufferKind::Arena).unwrap().0;
    out.offsets.set(arena, Some(offsets.arena_bytes));
    assert!(refuse(&placed, &out).contains("not inside the arena"));
    out.offsets.set(arena, Some(4));
    assert!(refuse(&placed, &out).contains("not inside the arena"));
    out.offsets.set(arena, None);
    assert!(refuse(&placed, &out).contains("not inside the arena"));
    let mut wrong = placed.clone();
    if let Step::Run { node, .. } = &mut wrong.steps[0] {
        *node = restride_ir::NodeId::new(99);
    }
    assert!(refuse(&wrong, &offsets).contains("the graph does not have"));
}

/// Runs at addresses leave what a run on tensors there leaves, and the memory of the binding as it was.
#[test]
fn a_bound_run_goes_to_addresses_and_comes_back() {
    let text = "stage: functional
output 0: mutation of %k
graph(%x: f32[2, 3], %k: f32[2, 2, 3], %w: f32[3]) {
  %y: f32[2, 3] = aten.mul.Tensor(%x, %w)
  %s: f32[2, 2, 3] = aten.select_scatter.default(%k, %y, 0, 1)
  %r: f32[2, 2, 3] = aten.relu.default(%s)
  return %s, %r
}";
    let runnable = Arc::new(planned(&program(text)));
    let values = |seed: f32| {
        let scaled = |t: RawTensor| {
            let all: Vec<f32> = t.read().view().to_elements::<f32>().iter().map(|v| v * seed - 1.0).collect();
            RawTensor::from_slice(&all, &t.layout().sizes)
        };
        [&[2, 3][..], &[2, 2, 3], &[3]].map(|sizes| scaled(floats(sizes)))
    };
    let expected = |inputs: &[RawTensor; 3]| {
        let inputs = inputs.clone().map(|t| Inputs::new([RunValue::Tensor(t)]).deep_clone().values.remove(0));
        let results = runnable.run(&mut ByteArena::default(), &inputs, RunCtx::default()).expect("runs");
        (elements(inputs[1].tensor().expect("a tensor")), elements(results[1].tensor().expect("a tensor")))
    };
    let own = values(1.0);
    let mut bound = BoundRun::new(
        runnable.clone(),
        ByteArena::default(),
        own.iter().cloned().map(RunValue::Tensor).collect(),
        Vec::new(),
    )
    .expect("binds");
    let start = |t: &RawTensor| t.storage().pin().expect("its address stays");
    let mut before = None;
    for seed in [2.0, 3.0, 5.0] {
        let given = values(seed);
        let (result, other) = (floats(&[2, 2, 3]), floats(&[2, 2, 3]));
        let want = expected(&given);
        // Of some inputs: the third stays where it was bound.
        let want_own = expected(&[given[0].clone(), given[1].clone(), own[2].clone()]);
        let kept = elements(&own[1]);
        for (count, want, result) in [(2, want_own, &other), (3, want, &result)] {
            let written = given[1].storage().to_vec();
            let inputs = given[..count].iter().map(start).enumerate().collect();
            // SAFETY: the tensors are of the bound types, live, and share no memory.
            let at = unsafe { Addresses::promise(inputs, vec![(1, start(result))]) };
            bound.run_at(&at, RunCtx::default()).expect("runs");
            assert_eq!((elements(&given[1]), elements(result)), want);
            given[1].storage().try_write(&written).expect("free memory");
        }
        assert_eq!(elements(&own[1]), kept, "nothing is written where it was bound");
        if let Some(before) = before.replace(given[1].clone()) {
            assert_eq!(elements(&before), elements(&values(if seed == 3.0 { 2.0 } else { 3.0 })[1]));
        }
    }
    let want = expected(&own);
    bound.run(RunCtx::default()).expect("runs in the memory of its binding");
    let results = bound.results().expect("results");
    assert_eq!((elements(&own[1]), elements(results[1].tensor().expect("a tensor"))), want);
    // SAFETY: positions are looked at before any address.
    let outside = unsafe { Addresses::promise(vec![(3, std::ptr::null_mut())], Vec::new()) };
    assert!(bound.run_at(&outside, RunCtx::default()).is_err());
}

#[test]
fn addresses_at_which_a_written_input_meets_another_are_refused() {
    let program = program(SUM_IN_PLACE);
    let (x, y, memory) = (floats(&[4]), floats(&[4]), floats(&[12]));
    let bound = [x, y].map(RunValue::Tensor);
    let at = |a: usize, b: usize| {
        let start = memory.storage().pin().expect("its address stays");
        // SAFETY: nothing runs.
        unsafe { Addresses::promise(vec![(0, start.wrapping_add(4 * a)), (1, start.wrapping_add(4 * b))], Vec::new()) }
    };
    let written = written_inputs(&program);
    for (a, b, fits) in [(0, 4, true), (8, 4, true), (0, 3, false), (4, 4, false), (7, 4, false)] {
        let checked = at(a, b).check_sharing(&program, &bound, &written);
        assert_eq!(checked.is_ok(), fits, "{a} {b}: {checked:?}");
    }
}
