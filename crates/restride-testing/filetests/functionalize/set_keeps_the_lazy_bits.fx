// `set_` takes over memory: whether elements are negated stays the tensor's own.
// run: functionalize, run
graph(%x: f32[3], %o: f32[2]) {
  %n: f32[3] = aten._neg_view.default(%x)
  %s: f32[2] = aten.set_.source_Tensor(%n, %o)
  %t: f32[2] = aten.add_.Scalar(%n, 1)
  %y: f32[2] = aten.mul.Scalar(%n, 2)
  return %y
}

// == functionalize
// output 0: mutation of %o
//
// graph(%x: f32[3], %o: f32[2]) {
//   %t: f32[2] = aten.neg.default(%o)
//   %t_1: f32[2] = aten.add.Scalar(%t, 1)
//   %t_2: f32[2] = aten.neg.default(%t_1)
//   %y: f32[2] = aten.mul.Scalar(%t_1, 2)
//   return %t_2, %y
// }

// == run
// input 0: f32[3][1]+0 = [0.0 1.0 2.0]
// input 1: f32[2][1]+0 = [-1.0 -0.0]
// output 0: f32[2][1]+0 = [2.0 0.0]
