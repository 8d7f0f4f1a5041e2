// What an in-place operator returns is its first argument: a write to it is a write to that.
// ops: mylib::bump_(Tensor(a!) x, Tensor y) -> Tensor(a!)
// run: verify, functionalize
graph(%a: f32[4], %b: f32[4]) {
  %c: f32[4] = aten.neg.default(%a)
  %r: f32[4] = mylib.bump_.default(%c, %b)
  %m: f32[4] = aten.mul_.Scalar(%r, 2)
  return %c, %m
}

// == verify
// ok

// == functionalize
// output 0: user as view f32[4] of base 2
// output 1: user as view f32[4] of base 2
// output 2: base
//
// graph(%a: f32[4], %b: f32[4]) {
//   %c: f32[4] = aten.neg.default(%a)
//   %c_1: f32[4] = mylib.bump__functional.default([%c], [0, -1], %b)
//   %m: f32[4] = aten.mul.Scalar(%c_1, 2)
//   return %m, %m, %m
// }
