// A view that reaches beyond what an input shows needs the whole storage.
// run: functionalize, run
// share: %x %y
graph(%x: f32[2], %y: f32[2]+4) {
  %v: f32[3][2] = aten.as_strided.default(%x, [3], [2])
  %w: f32[3][2] = aten.fill_.Scalar(%v, 9)
  return %y
}

// == functionalize
// stage: functional
// input %storage_x_y: storage of %x, %y
// output 0: mutation of %storage_x_y
// output 1: user as view f32[2]+4 of input %storage_x_y
//
// graph(%x: f32[2], %y: f32[2]+4, %storage_x_y: f32[6]) {
//   %w: f32[3][2] = aten.slice.Tensor(%storage_x_y, 0, 0, 5, 2)
//   %w_1: f32[3][2] = aten.fill.Scalar(%w, 9)
//   %w_2: f32[6] = aten.slice_scatter.default(%storage_x_y, %w_1, 0, 0, 5, 2)
//   %v: f32[2]+4 = aten.slice.Tensor(%w_2, 0, 4, 6)
//   return %w_2, %v
// }

// == run
// input 0: f32[2][1]+0 = [9.0 1.0]
// input 1: f32[2][1]+4 = [9.0 5.0], on the storage of input 0
// output 0: f32[2][1]+4 = [9.0 5.0], on the storage of input 0
