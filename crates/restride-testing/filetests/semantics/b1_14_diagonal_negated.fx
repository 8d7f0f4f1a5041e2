// A write through a diagonal.
// run: functionalize, run
graph(%x: f32[3, 3]) {
  %d: f32[3][4] = aten.diagonal.default(%x)
  %w: f32[3][4] = aten.neg_.default(%d)
  return %x
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: user as view f32[3, 3] of input %x
//
// graph(%x: f32[3, 3]) {
//   %d: f32[3][4] = aten.diagonal.default(%x)
//   %w: f32[3][4] = aten.neg.default(%d)
//   %w_1: f32[3, 3] = aten.as_strided_scatter.default(%x, %w, [3], [4], 0)
//   return %w_1, %w_1
// }

// == run
// input 0: f32[3, 3][3, 1]+0 = [-0.0 1.0 2.0 3.0 -4.0 5.0 6.0 7.0 -8.0]
// output 0: f32[3, 3][3, 1]+0 = [-0.0 1.0 2.0 3.0 -4.0 5.0 6.0 7.0 -8.0], on the storage of input 0
