// Two grids that meet in some cells are merged.
// run: functionalize, run
// share: %x %y
graph(%x: f32[3, 2][10, 4], %y: f32[3, 2][10, 4]+14) {
  %w: f32[3, 2][10, 4] = aten.add_.Tensor(%x, 100)
  %s: f32[3, 2] = aten.sub.Tensor(%y, 1)
  return %s
}

// == functionalize
// stage: functional
// input %storage_x_y: storage of %x, %y
// output 0: mutation of %storage_x_y
//
// graph(%x: f32[3, 2][10, 4], %y: f32[3, 2][10, 4]+14, %storage_x_y: f32[39]) {
//   %w: f32[3, 2][10, 4] = aten.as_strided.default(%storage_x_y, [3, 2], [10, 4], 0)
//   %w_1: f32[3, 2][10, 4] = aten.add.Tensor(%w, 100)
//   %w_2: f32[39] = aten.as_strided_scatter.default(%storage_x_y, %w_1, [3, 2], [10, 4], 0)
//   %s: f32[3, 2][10, 4]+14 = aten.as_strided.default(%w_2, [3, 2], [10, 4], 14)
//   %s_1: f32[3, 2] = aten.sub.Tensor(%s, 1)
//   return %w_2, %s_1
// }

// == run
// input 0: f32[3, 2][10, 4]+0 = [100.0 104.0 110.0 114.0 120.0 124.0]
// input 1: f32[3, 2][10, 4]+14 = [114.0 18.0 124.0 28.0 34.0 38.0], on the storage of input 0
// output 0: f32[3, 2][2, 1]+0 = [113.0 17.0 123.0 27.0 33.0 37.0]
