//! Functional programs: declared mutations, bases, views of inputs, and refusals of what they were not made for.

use super::*;

const SWAP: &str = "stage: functional
output 0: mutation of %x
output 1: mutation of %y
graph(%x: f32[2], %y: f32[2]) {
  %s: f32[2] = aten.add.Tensor(%x, %y)
  return %y, %x, %s, %x
}";

#[test]
fn new_contents_are_taken_before_any_is_written() {
    let (x, y) = (f32s(&[1., 2.]), f32s(&[3., 4.]));
    let out = runs(SWAP, &[&x, &y]);
    assert_eq!((x.to_elements::<f32>(), y.to_elements::<f32>()), (vec![3., 4.], vec![1., 2.]));
    assert_eq!(floats(&out, 0), [4., 6.]);
    // An output that is not declared a view is fresh memory with the value of its time.
    assert_eq!(floats(&out, 1), [1., 2.]);
    assert!(!tensor(&out, 1).storage().same(x.storage()));
}

#[test]
fn declared_views_are_views() {
    let x = count(&[2, 3]);
    let out = runs(
        "stage: functional
output 0: mutation of %x
output 1: user as view f32[3, 2][1, 3] of input %x
output 2: base
output 3: user as view f32[2]+4 of base 2
output 4: user as view f32[6] of base 2
graph(%x: f32[2, 3]) {
  %a: f32[2, 3] = aten.add.Tensor(%x, 1)
  %t: f32[3, 2][1, 3] = aten.t.default(%a)
  %m: f32[6] = aten.mul.Tensor(%flat, 2)
  %s: f32[2]+4 = aten.slice.Tensor(%m, 0, 4, 6)
  return %a, %t, %m, %s, %m
}"
        .replace("  %m: f32[6]", "  %flat: f32[6] = aten.reshape.default(%a, [6])\n  %m: f32[6]")
        .as_str(),
        &[&x],
    );
    assert_eq!(x.to_elements::<f32>(), [1., 2., 3., 4., 5., 6.]);
    assert!(tensor(&out, 0).storage().same(x.storage()));
    assert_eq!(floats(&out, 0), [1., 4., 2., 5., 3., 6.]);
    assert!(tensor(&out, 1).storage().same(tensor(&out, 2).storage()));
    assert_eq!(floats(&out, 1), [10., 12.]);
}

#[test]
fn a_declared_storage_is_bound_to_the_memory_that_inputs_share() {
    let text = "stage: functional
input %st: storage of %x, %y
output 0: mutation of %st
output 1: user as view f32[2]+2 of input %y
graph(%x: f32[2], %y: f32[2]+2, %st: f32[6]) {
  %n: f32[6] = aten.mul.Tensor(%st, 10)
  %v: f32[2]+2 = aten.slice.Tensor(%n, 0, 2, 4)
  return %n, %v
}";
    let base = count(&[6]);
    let at = |offset| on(base.storage(), DType::F32, &[2], &[1], offset);
    let out = runs(text, &[&at(0), &at(2)]);
    assert_eq!(base.to_elements::<f32>(), [0., 10., 20., 30., 40., 50.]);
    assert!(tensor(&out, 0).storage().same(base.storage()));
    assert!(fails(text, &[&at(0), &f32s(&[1., 2.])]).contains("must be one"));
    assert!(fails(text, &[&at(0), &at(3)]).contains("input y starts at element 3 of its storage"));
}

#[test]
fn inputs_that_the_program_was_not_made_for_are_refused() {
    let base = count(&[4]);
    let at = |offset| on(base.storage(), DType::F32, &[2], &[1], offset);
    let e = fails(SWAP, &[&at(0), &at(1)]);
    assert!(e.contains("input x is written and shares memory with input y"), "{e}");
    runs(SWAP, &[&at(0), &at(2)]);
    let gaps = on(base.storage(), DType::F32, &[2], &[2], 0);
    let e = fails(SWAP, &[&gaps, &f32s(&[1., 2.])]);
    assert!(e.contains("input x has strides [2]"), "{e}");
}

#[test]
fn values_are_in_the_layout_that_they_are_declared_to_have() {
    // `as_strided` sees the transposed layout that the clone is declared with.
    let x = count(&[2, 3]);
    let out = runs(
        "stage: functional
graph(%x: f32[2, 3]) {
  %c: f32[2, 3][1, 2] = aten.clone.default(%x)
  %v: f32[6] = aten.as_strided.default(%c, [6], [1])
  return %v
}",
        &[&x],
    );
    assert_eq!(floats(&out, 0), [0., 3., 1., 4., 2., 5.]);
}
