// An input is a view of another input; the view is written, then the base.
// run: functionalize, run
// share: %x %y
graph(%x: f32[2, 3], %y: f32[2][3]+1) {
  %w: f32[2][3]+1 = aten.add_.Tensor(%y, 10)
  %s: f32[] = aten.sum.default(%x)
  %v: f32[2, 3] = aten.mul_.Tensor(%x, 2)
  %z: f32[2] = aten.neg.default(%y)
  return %s, %z
}

// == functionalize
// stage: functional
// input %storage_x_y: storage of %x, %y
// output 0: mutation of %storage_x_y
//
// graph(%x: f32[2, 3], %y: f32[2][3]+1, %storage_x_y: f32[6]) {
//   %w: f32[2][3]+1 = aten.slice.Tensor(%storage_x_y, 0, 1, 5, 3)
//   %w_1: f32[2][3]+1 = aten.add.Tensor(%w, 10)
//   %w_2: f32[6] = aten.slice_scatter.default(%storage_x_y, %w_1, 0, 1, 5, 3)
//   %s: f32[2, 3] = aten.reshape.default(%w_2, [2, 3])
//   %s_1: f32[] = aten.sum.default(%s)
//   %v: f32[2, 3] = aten.mul.Tensor(%s, 2)
//   %v_1: f32[6] = aten.reshape.default(%v, [6])
//   %z: f32[2][3]+1 = aten.slice.Tensor(%v_1, 0, 1, 5, 3)
//   %z_1: f32[2] = aten.neg.default(%z)
//   return %v_1, %s_1, %z_1
// }

// == run
// input 0: f32[2, 3][3, 1]+0 = [0.0 22.0 4.0 6.0 28.0 10.0]
// input 1: f32[2][3]+1 = [22.0 28.0], on the storage of input 0
// output 0: f32[][]+0 = [35.0]
// output 1: f32[2][1]+0 = [-22.0 -28.0]
