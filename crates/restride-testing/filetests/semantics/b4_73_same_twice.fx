// One tensor as both arguments, and a tensor beside its own split.
// ops: mylib::two(Tensor(a!) a, Tensor(b!) b) -> ()
// run: verify, functionalize
graph(%a: f32[6]) {
  %b: f32[6] = aten.neg.default(%a)
  mylib.two.default(%b, %b)
  %p: f32[3], %q: f32[3]+3 = aten.split.Tensor(%b, 3)
  mylib.two.default(%p, %b)
  mylib.two.default(%q, %p)
  return %q
}

// == verify
// ok

// == functionalize
// stage: functional
// output 0: user as view f32[3]+3 of base 1
// output 1: base
//
// graph(%a: f32[6]) {
//   %b: f32[6] = aten.neg.default(%a)
//   %b_1: f32[6] = mylib.two_functional.default([%b], [0, -1, 0, -1])
//   %b_1_1: f32[6] = mylib.two_functional.default([%b_1], [0, 1, 3, 1, 0, 0, -1])
//   %b_1_1_1: f32[6] = mylib.two_functional.default([%b_1_1], [0, 1, 3, 1, 3, 0, 1, 3, 1, 0])
//   %v: f32[3]+3 = aten.slice.Tensor(%b_1_1_1, 0, 3, 6)
//   return %v, %b_1_1_1
// }
