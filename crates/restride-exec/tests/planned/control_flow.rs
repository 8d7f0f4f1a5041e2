//! Higher-order operators.

use super::*;

#[test]
fn a_branch_is_taken() {
    let text = "stage: functional
graph(%p: bool[], %x: f32[2, 3], %y: f32[2, 3]) {
  %a: f32[2, 3] = aten.mul.Tensor(%x, %y)
  %c: f32[2, 3], %d: f32[3, 2] = higher_order.cond(%p, @yes, @no, [%a, %y])
  %e: f32[2, 3] = aten.add.Tensor(%c, %a)
  return %e, %d
}
graph @yes(%a: f32[2, 3], %b: f32[2, 3]) {
  %w: f32[2, 3] = aten.add.Tensor(%a, %b)
  %r: f32[3, 2] = aten.reshape.default(%w, [3, 2])
  %s: f32[3, 2] = aten.mul.Tensor(%r, 3)
  return %w, %s
}
graph @no(%a: f32[2, 3], %b: f32[2, 3]) {
  %n: f32[2, 3] = aten.neg.default(%a)
  %r: f32[3, 2] = aten.reshape.default(%b, [3, 2])
  %s: f32[3, 2] = aten.neg.default(%r)
  return %n, %s
}";
    for p in [true, false] {
        agree(text, &[bool_scalar(p), floats(&[2, 3]), floats(&[2, 3])]);
    }
}

#[test]
fn a_branch_may_give_back_what_it_was_given() {
    let text = "stage: functional
graph(%p: bool[], %x: f32[2, 3]) {
  %a: f32[2, 3] = aten.mul.Tensor(%x, 2)
  %c: f32[2, 3], %d: f32[2, 3] = higher_order.cond(%p, @yes, @no, [%a])
  return %c, %d
}
graph @yes(%a: f32[2, 3]) {
  return %a, %a
}
graph @no(%a: f32[2, 3]) {
  %n: f32[2, 3] = aten.neg.default(%a)
  return %n, %n
}";
    for p in [true, false] {
        agree(text, &[bool_scalar(p), floats(&[2, 3])]);
    }
}

const WHILE: &str = "stage: functional
graph(%i: i64[], %x: f32[2, 3], %w: f32[3]) {
  %n: i64[], %y: f32[2, 3], %z: f32[2, 3] = higher_order.while_loop(@more, @body, [%i, %x, %x], [%w])
  %r: f32[2, 3] = aten.add.Tensor(%y, %z)
  return %n, %y, %r
}
graph @more(%i: i64[], %x: f32[2, 3], %z: f32[2, 3], %w: f32[3]) {
  %lt: bool[] = aten.lt.Scalar(%i, 3)
  return %lt
}
graph @body(%i: i64[], %x: f32[2, 3], %z: f32[2, 3], %w: f32[3]) {
  %next: i64[] = aten.add.Tensor(%i, 1)
  %twice: f32[2, 3] = aten.mul.Tensor(%x, %w)
  %sum: f32[2, 3] = aten.add.Tensor(%twice, %z)
  return %next, %sum, %x
}";

#[test]
fn a_loop_carries() {
    for start in [0i64, 2, 3, 7] {
        agree(WHILE, &[RawTensor::from_slice(&[start], &[]), floats(&[2, 3]), floats(&[3])]);
    }
}

#[test]
fn a_scan_stacks_and_a_map_maps() {
    let scan = "stage: functional
graph(%init: f32[2], %xs: f32[4, 2], %b: f32[2]) {
  %xt: f32[4, 2] = aten.mul.Tensor(%xs, 2)
  %last: f32[2], %ys: f32[4, 2] = higher_order.scan(@f, [%init], [%xt], [%b])
  %s: f32[4, 2] = aten.add.Tensor(%ys, %last)
  return %last, %ys, %s
}
graph @f(%c: f32[2], %x: f32[2], %b: f32[2]) {
  %sum: f32[2] = aten.add.Tensor(%c, %x)
  %y: f32[2] = aten.mul.Tensor(%c, %b)
  return %sum, %y
}";
    agree(scan, &[floats(&[2]), floats(&[4, 2]), floats(&[2])]);
    let map = "stage: functional
graph(%xs: f32[4, 2, 3], %s: f32[3]) {
  %t: f32[4, 3, 2][6, 1, 3] = aten.transpose.int(%xs, 1, 2)
  %ys: f32[4, 3, 2], %zs: f32[4, 3] = higher_order.map_impl(@f, [%t], [%s])
  return %ys, %zs
}
graph @f(%x: f32[3, 2], %s: f32[3]) {
  %u: f32[3, 1] = aten.unsqueeze.default(%s, 1)
  %y: f32[3, 2] = aten.sub.Tensor(%x, %u)
  %z: f32[3] = aten.select.int(%y, 1, 0)
  %w: f32[3] = aten.mul.Tensor(%z, 2)
  return %y, %w
}";
    agree(map, &[floats(&[4, 2, 3]), floats(&[3])]);
}

#[test]
fn loops_within_loops() {
    let text = "stage: functional
graph(%xs: f32[3, 2], %b: f32[2]) {
  %ys: f32[3, 2] = higher_order.map_impl(@f, [%xs], [%b])
  return %ys
}
graph @f(%x: f32[2], %b: f32[2]) {
  %i: i64[] = aten.full.default([], 0, dtype=i64)
  %n: i64[], %y: f32[2] = higher_order.while_loop(@more, @body, [%i, %x], [%b])
  %z: f32[2] = aten.add.Tensor(%y, %x)
  return %z
}
graph @more(%i: i64[], %x: f32[2], %b: f32[2]) {
  %lt: bool[] = aten.lt.Scalar(%i, 2)
  return %lt
}
graph @body(%i: i64[], %x: f32[2], %b: f32[2]) {
  %next: i64[] = aten.add.Tensor(%i, 1)
  %y: f32[2] = aten.mul.Tensor(%x, %b)
  return %next, %y
}";
    agree(text, &[floats(&[3, 2]), floats(&[2])]);
}
