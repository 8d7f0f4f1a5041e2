// A list of views of two tensors, one of them an input, beside other arguments.
// ops: mylib::lists(Tensor(a!)[] xs, Tensor(b!)? y, Tensor w) -> Tensor
// run: verify, functionalize
graph(%a: f32[2, 4], %b: f32[3, 4], %w: f32[2]) {
  %c: f32[3, 4] = aten.neg.default(%b)
  %a0: f32[4] = aten.select.int(%a, 0, 0)
  %c1: f32[4]+4 = aten.select.int(%c, 0, 1)
  %am: f32[2, 2][4, 1]+1 = aten.slice.Tensor(%a, 1, 1, 3)
  %c2: f32[4]+8 = aten.select.int(%c, 0, 2)
  %r: f32[2] = mylib.lists.default([%a0, %c1, %am], %c2, %w)
  %v: f32[2]+1 = aten.slice.Tensor(%a0, 0, 1, 3)
  return %r, %c, %v
}

// == verify
// ok

// == functionalize
// stage: functional
// output 0: mutation of %a
// output 3: user as view f32[2]+1 of input %a
//
// graph(%a: f32[2, 4], %b: f32[3, 4], %w: f32[2]) {
//   %c: f32[3, 4] = aten.neg.default(%b)
//   %r: f32[2], %a_1: f32[2, 4], %c_1: f32[3, 4] = mylib.lists_functional.default([%a, %c], [3, 0, 1, 4, 1, 0, 1, 1, 4, 1, 4, 0, 2, 2, 2, 4, 1, 1, 1, 1, 4, 1, 8], %w)
//   %v: f32[4] = aten.select.int(%a_1, 0, 0)
//   %v_1: f32[2]+1 = aten.slice.Tensor(%v, 0, 1, 3)
//   return %a_1, %r, %c_1, %v_1
// }
