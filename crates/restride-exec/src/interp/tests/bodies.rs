//! Higher-order operators: operands by reference, carries, stacking, symbols and draws of iterations.

use super::*;
use restride_tensor::Scalar;

#[test]
fn a_branch_writes_its_operands() {
    let text = "graph(%p: bool[], %x: f32[2]) {
  %c: f32[2] = higher_order.cond(%p, @yes, @no, [%x])
  return %c
}
graph @yes(%a: f32[2]) {
  %w: f32[2] = aten.add_.Tensor(%a, 1)
  return %w
}
graph @no(%a: f32[2]) {
  %n: f32[2] = aten.neg.default(%a)
  return %n
}";
    let pred = |b: u8| {
        RawTensor::new(RawTensor::from_slice(&[b], &[]).storage().clone(), DType::Bool, Layout::contiguous(&[]))
    };
    let x = f32s(&[1., 2.]);
    let out = runs(text, &[&pred(1).unwrap(), &x]);
    assert_eq!(x.to_elements::<f32>(), [2., 3.]);
    // The branch returned its operand: the output is a view of the input's memory.
    assert!(tensor(&out, 0).storage().same(x.storage()));
    let out = runs(text, &[&pred(0).unwrap(), &x]);
    assert_eq!((floats(&out, 0), x.to_elements::<f32>()), (vec![-2., -3.], vec![2., 3.]));
}

const WHILE: &str = "graph(%i: i64[], %x: f32[2], %buf: f32[2]) {
  %n: i64[], %y: f32[2] = higher_order.while_loop(@more, @body, [%i, %x], [%buf])
  return %n, %y
}
graph @more(%i: i64[], %x: f32[2], %buf: f32[2]) {
  %lt: bool[] = aten.lt.Scalar(%i, 3)
  return %lt
}
graph @body(%i: i64[], %x: f32[2], %buf: f32[2]) {
  %w: f32[2] = aten.add_.Tensor(%buf, %x)
  %next: i64[] = aten.add.Tensor(%i, 1)
  %twice: f32[2] = aten.mul.Tensor(%x, 2)
  return %next, %twice
}";

#[test]
fn a_loop_rebinds_its_carries_and_writes_what_it_captures() {
    let (x, buf) = (f32s(&[1., 10.]), f32s(&[0., 0.]));
    let out = runs(WHILE, &[&RawTensor::from_slice(&[0i64], &[]), &x, &buf]);
    assert_eq!(tensor(&out, 0).get(&[]), Scalar::Int(3));
    assert_eq!(floats(&out, 1), [8., 80.]);
    assert_eq!(buf.to_elements::<f32>(), [1. + 2. + 4., 10. + 20. + 40.]);
    assert_eq!(x.to_elements::<f32>(), [1., 10.]);
}

#[test]
fn a_loop_that_never_runs_gives_copies() {
    let (x, buf) = (f32s(&[1., 10.]), f32s(&[0., 0.]));
    let out = runs(WHILE, &[&RawTensor::from_slice(&[5i64], &[]), &x, &buf]);
    assert_eq!(floats(&out, 1), [1., 10.]);
    assert!(!tensor(&out, 1).storage().same(x.storage()));
    assert_eq!(buf.to_elements::<f32>(), [0., 0.]);
}

#[test]
fn a_scan_stacks_and_a_map_maps() {
    let (init, xs, buf) = (f32s(&[0., 0.]), count(&[4, 2]), f32s(&[0., 0.]));
    let out = runs(
        "graph(%init: f32[2], %xs: f32[4, 2], %buf: f32[2]) {
  %last: f32[2], %ys: f32[4, 2] = higher_order.scan(@f, [%init], [%xs], [%buf])
  return %last, %ys
}
graph @f(%c: f32[2], %x: f32[2], %buf: f32[2]) {
  %w: f32[2] = aten.add_.Tensor(%buf, 1)
  %sum: f32[2] = aten.add.Tensor(%c, %x)
  %y: f32[2] = aten.mul.Tensor(%c, 1)
  return %sum, %y
}",
        &[&init, &xs, &buf],
    );
    assert_eq!(floats(&out, 0), [12., 16.]);
    let (mut carry, mut ys) = ([0f32, 0.], Vec::new());
    for row in xs.to_elements::<f32>().chunks(2) {
        ys.extend(carry);
        carry = [carry[0] + row[0], carry[1] + row[1]];
    }
    assert_eq!(floats(&out, 1), ys);
    assert_eq!(buf.to_elements::<f32>(), [4., 4.]);
    let out = runs(
        "graph(%xs: f32[4, 2], %s: f32[2]) {
  %ys: f32[4, 2] = higher_order.map_impl(@f, [%xs], [%s])
  return %ys
}
graph @f(%x: f32[2], %s: f32[2]) {
  %y: f32[2] = aten.sub.Tensor(%x, %s)
  return %y
}",
        &[&xs, &f32s(&[1., 2.])],
    );
    assert_eq!(
        floats(&out, 0),
        xs.to_elements::<f32>().iter().enumerate().map(|(i, x)| x - 1. - (i % 2) as f32).collect::<Vec<_>>()
    );
}

#[test]
fn symbols_of_an_iteration_end_with_it() {
    // The body's u0 is 1, 2, 3 in turn.
    let out = runs(
        "symbol u0
graph(%xs: i64[3], %v: f32[4]) {
  %ys: f32[3] = higher_order.map_impl(@f, [%xs], [%v])
  return %ys
}
graph @f(%n: i64[], %v: f32[4]) {
  %k: Sym(u0) = aten.item.default(%n)
  %s: f32[u0] = aten.slice.Tensor(%v, 0, 0, u0)
  %y: f32[] = aten.sum.default(%s)
  return %y
}",
        &[&i64s(&[1, 2, 3]), &f32s(&[1., 10., 100., 1000.])],
    );
    assert_eq!(floats(&out, 0), [1., 11., 111.]);
}

#[test]
fn draws_differ_by_iteration_node_call_and_seed_and_by_nothing_else() {
    let text = "graph(%xs: f32[2, 8]) {
  %ys: f32[2, 8] = higher_order.map_impl(@f, [%xs], [])
  %a: f32[8] = aten.rand.default([8]) !key 5
  %b: f32[8] = aten.rand.default([8]) !key 5
  %c: f32[8] = aten.rand.default([8]) !key 6
  return %ys, %a, %b, %c
}
graph @f(%x: f32[8]) {
  %r: f32[8] = aten.rand.default([8]) !key 1
  %y: f32[8] = aten.add.Tensor(%x, %r)
  return %y
}";
    let program = program(text);
    let draw = |seed: u64, call: u64| {
        let inputs = Inputs::new([RunValue::Tensor(RawTensor::zeros(DType::F32, Layout::contiguous(&[2, 8])))]);
        let options = RunOptions { seed, call, ..RunOptions::default() };
        interpret(&program, &inputs, &mut State::new(&program).unwrap(), &options).unwrap()
    };
    let out = draw(1, 0);
    let ys = floats(&out, 0);
    assert_ne!(ys[..8], ys[8..]);
    assert_eq!(floats(&out, 1), floats(&out, 2));
    assert_ne!(floats(&out, 1), floats(&out, 3));
    assert_eq!(floats(&draw(1, 0), 0), ys);
    assert_ne!(floats(&draw(2, 0), 1), floats(&out, 1));
    assert_ne!(floats(&draw(1, 1), 1), floats(&out, 1));
}

/// At the top PyTorch fills a diagonal of a negated tensor through a view; in a branch it copies the tensor first, and writes back
/// all of the copy, so that a cell twice keeps what comes last (both results: PyTorch 2.15).
#[test]
fn a_branch_copies_a_lazily_mapped_target() {
    let calls = "%n: f32[2, 3][1, 1] = aten._neg_view.default(%w)
  %f: f32[2, 3][1, 1] = aten.fill_diagonal_.default(%n, 2)";
    let top = format!(
        "graph(%x: f32[4]) {{
  %w: f32[2, 3][1, 1] = aten.unfold.default(%x, 0, 3, 1)
  {calls}
  return %x
}}"
    );
    let x = f32s(&[9., 5., -6., -1.]);
    runs(&top, &[&x]);
    assert_eq!(x.to_elements::<f32>(), [-2., 5., -2., -1.]);
    let branch = format!(
        "graph(%x: f32[4], %p: bool[]) {{
  %w: f32[2, 3][1, 1] = aten.unfold.default(%x, 0, 3, 1)
  %r: f32[] = higher_order.cond(%p, @filled, @filled, [%w])
  return %r
}}
graph @filled(%w: f32[2, 3][1, 1]) {{
  {calls}
  %r: f32[] = aten.sum.default(%w)
  return %r
}}"
    );
    let p = RawTensor::new(RawTensor::from_slice(&[1u8], &[]).storage().clone(), DType::Bool, Layout::contiguous(&[]));
    let x = f32s(&[9., 5., -6., -1.]);
    runs(&branch, &[&x, &p.unwrap()]);
    assert_eq!(x.to_elements::<f32>(), [-2., 5., -6., -1.]);
}
