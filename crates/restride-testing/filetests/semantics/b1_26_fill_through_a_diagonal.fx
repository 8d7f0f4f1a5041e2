// fill_ through a diagonal.
// run: functionalize, run
graph(%a: f32[3, 3]) {
  %x: f32[3, 3] = aten.neg.default(%a)
  %d: f32[3][4] = aten.diagonal.default(%x)
  %w: f32[3][4] = aten.fill_.Scalar(%d, 7)
  return %x
}

// == functionalize
// stage: functional
//
// graph(%a: f32[3, 3]) {
//   %x: f32[3, 3] = aten.neg.default(%a)
//   %d: f32[3][4] = aten.diagonal.default(%x)
//   %w: f32[3][4] = aten.fill.Scalar(%d, 7)
//   %w_1: f32[3, 3] = aten.as_strided_scatter.default(%x, %w, [3], [4], 0)
//   return %w_1
// }

// == run
// input 0: f32[3, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0]
// output 0: f32[3, 3][3, 1]+0 = [7.0 -1.0 -2.0 -3.0 7.0 -5.0 -6.0 -7.0 7.0]
