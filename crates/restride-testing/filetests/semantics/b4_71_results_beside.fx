// New results stand beside the new contents of what is written.
// ops: mylib::both(Tensor(a!) a, Tensor(b!) b, Tensor c) -> (Tensor, Tensor)
// run: verify, functionalize
graph(%a: f32[4], %b: f32[4], %c: f32[4]) {
  %r: f32[4], %s: f32[2] = mylib.both.default(%a, %b, %c)
  %m: f32[4] = aten.add_.Tensor(%a, %r)
  return %s, %b
}

// == verify
// ok

// == functionalize
// output 0: mutation of %a
// output 1: mutation of %b
// output 3: user as view f32[4] of input %b
//
// graph(%a: f32[4], %b: f32[4], %c: f32[4]) {
//   %r: f32[4], %s: f32[2], %a_1: f32[4], %b_1: f32[4] = mylib.both_functional.default([%a, %b], [0, -1, 1, -1], %c)
//   %m: f32[4] = aten.add.Tensor(%a_1, %r)
//   return %m, %b_1, %s, %b_1
// }
