// The only output is a view of an intermediate: memory of its own that the caller may write.
// run: functionalize, run
// caller: output 0 = 7
graph(%x: f32[4]) {
  %y: f32[4] = aten.mul.Tensor(%x, 2)
  %v: f32[2, 2] = aten.view.default(%y, [2, 2])
  return %v
}

// == functionalize
// stage: functional
// output 0: user as view f32[2, 2] of base 1
// output 1: base
//
// graph(%x: f32[4]) {
//   %y: f32[4] = aten.mul.Tensor(%x, 2)
//   %v: f32[2, 2] = aten.view.default(%y, [2, 2])
//   return %v, %y
// }

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[2, 2][2, 1]+0 = [7.0 7.0 7.0 7.0]
