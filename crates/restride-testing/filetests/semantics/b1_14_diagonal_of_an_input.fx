// A write through a diagonal of an input reaches the input.
// run: functionalize, run
graph(%x: f32[2, 3]) {
  %d: f32[2][4]+1 = aten.diagonal.default(%x, 1)
  %w: f32[2][4]+1 = aten.add_.Tensor(%d, 10)
  return %d
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: user as view f32[2][4]+1 of input %x
//
// graph(%x: f32[2, 3]) {
//   %d: f32[2][4]+1 = aten.diagonal.default(%x, 1)
//   %w: f32[2][4]+1 = aten.add.Tensor(%d, 10)
//   %w_1: f32[2, 3] = aten.as_strided_scatter.default(%x, %w, [2], [4], 1)
//   return %w_1, %w
// }

// == run
// input 0: f32[2, 3][3, 1]+0 = [0.0 11.0 2.0 3.0 4.0 15.0]
// output 0: f32[2][4]+1 = [11.0 15.0], on the storage of input 0
