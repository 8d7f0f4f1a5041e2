// Overlapping windows of an input and of a chain of views: each cell has what eager's loop leaves there.
// run: functionalize, run
graph(%x: f32[6]) {
  %s: f32[5]+1 = aten.slice.Tensor(%x, 0, 1, 6)
  %u: f32[3, 3][1, 1]+1 = aten.unfold.default(%s, 0, 3, 1)
  %w: f32[3, 3][1, 1]+1 = aten.mul_.Tensor(%u, 2)
  %t: f32[3][2] = aten.as_strided.default(%x, [3], [2])
  %a: f32[3][2] = aten.add_.Tensor(%t, 1)
  return %s
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: user as view f32[5]+1 of input %x
//
// graph(%x: f32[6]) {
//   %w: f32[3]+1 = aten.slice.Tensor(%x, 0, 1, 4)
//   %w_1: f32[3]+1 = aten.mul.Tensor(%w, 2)
//   %w_2: f32[6] = aten.slice_scatter.default(%x, %w_1, 0, 1, 4)
//   %w_3: f32[3]+2 = aten.slice.Tensor(%w_2, 0, 2, 5)
//   %w_4: f32[3]+2 = aten.mul.Tensor(%w_3, 2)
//   %w_5: f32[6] = aten.slice_scatter.default(%w_2, %w_4, 0, 2, 5)
//   %w_6: f32[3]+3 = aten.slice.Tensor(%w_5, 0, 3, 6)
//   %w_7: f32[3]+3 = aten.mul.Tensor(%w_6, 2)
//   %w_8: f32[6] = aten.slice_scatter.default(%w_5, %w_7, 0, 3, 6)
//   %a: f32[3][2] = aten.slice.Tensor(%w_8, 0, 0, 5, 2)
//   %a_1: f32[3][2] = aten.add.Tensor(%a, 1)
//   %a_2: f32[6] = aten.slice_scatter.default(%w_8, %a_1, 0, 0, 5, 2)
//   %v: f32[5]+1 = aten.slice.Tensor(%a_2, 0, 1, 6)
//   return %a_2, %v
// }

// == run
// input 0: f32[6][1]+0 = [1.0 2.0 9.0 24.0 17.0 10.0]
// output 0: f32[5][1]+1 = [2.0 9.0 24.0 17.0 10.0], on the storage of input 0
