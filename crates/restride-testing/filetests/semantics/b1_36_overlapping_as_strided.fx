// A write through overlapping windows: a loop in logical order.
// run: functionalize, run
graph(%x: f32[4]) {
  %v: f32[3, 2][1, 1] = aten.as_strided.default(%x, [3, 2], [1, 1])
  %w: f32[3, 2][1, 1] = aten.add_.Tensor(%v, 1)
  return %x
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: user as view f32[4] of input %x
//
// graph(%x: f32[4]) {
//   %w: f32[2] = aten.slice.Tensor(%x, 0, 0, 2)
//   %w_1: f32[2] = aten.add.Tensor(%w, 1)
//   %w_2: f32[4] = aten.slice_scatter.default(%x, %w_1, 0, 0, 2)
//   %w_3: f32[2]+1 = aten.slice.Tensor(%w_2, 0, 1, 3)
//   %w_4: f32[2]+1 = aten.add.Tensor(%w_3, 1)
//   %w_5: f32[4] = aten.slice_scatter.default(%w_2, %w_4, 0, 1, 3)
//   %w_6: f32[2]+2 = aten.slice.Tensor(%w_5, 0, 2, 4)
//   %w_7: f32[2]+2 = aten.add.Tensor(%w_6, 1)
//   %w_8: f32[4] = aten.slice_scatter.default(%w_5, %w_7, 0, 2, 4)
//   return %w_8, %w_8
// }

// == run
// input 0: f32[4][1]+0 = [1.0 3.0 4.0 4.0]
// output 0: f32[4][1]+0 = [1.0 3.0 4.0 4.0], on the storage of input 0
