// Views of one tensor, apart and overlapping, reach the operator as views of one tensor.
// ops: mylib::two(Tensor(a!) a, Tensor(b!) b) -> ()
// run: verify, functionalize
graph(%a: f32[4, 4]) {
  %b: f32[4, 4] = aten.neg.default(%a)
  %r: f32[4] = aten.select.int(%b, 0, 0)
  %s: f32[4]+4 = aten.select.int(%b, 0, 1)
  mylib.two.default(%r, %s)
  %u: f32[3, 4] = aten.slice.Tensor(%b, 0, 0, 3)
  %d: f32[4, 3][4, 1]+1 = aten.slice.Tensor(%b, 1, 1, 4)
  mylib.two.default(%u, %d)
  %untouched: f32[1, 1][4, 1]+12 = aten.as_strided.default(%b, [1, 1], [4, 1], 12)
  return %b, %r, %untouched
}

// == verify
// ok

// == functionalize
// stage: functional
// output 0: user as view f32[4, 4] of base 3
// output 1: user as view f32[4] of base 3
// output 2: user as view f32[1, 1][4, 1]+12 of base 3
// output 3: base
//
// graph(%a: f32[4, 4]) {
//   %b: f32[4, 4] = aten.neg.default(%a)
//   %b_1: f32[4, 4] = mylib.two_functional.default([%b], [0, 1, 4, 1, 0, 0, 1, 4, 1, 4])
//   %b_1_1: f32[4, 4] = mylib.two_functional.default([%b_1], [0, 2, 3, 4, 4, 1, 0, 0, 2, 4, 3, 4, 1, 1])
//   %v: f32[4] = aten.select.int(%b_1_1, 0, 0)
//   %v_1: f32[4, 1][4, 1] = aten.slice.Tensor(%b_1_1, 1, 0, 1)
//   %v_2: f32[1, 1][4, 1]+12 = aten.slice.Tensor(%v_1, 0, 3, 4)
//   return %b_1_1, %v, %v_2, %b_1_1
// }
