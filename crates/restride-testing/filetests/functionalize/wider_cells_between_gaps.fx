// Wider elements in the rows of an input with gaps between them.
// run: functionalize, run
// share: %x
graph(%x: f32[2, 3][4, 1]) {
  %f: f32[2, 2][4, 1] = aten.slice.Tensor(%x, 1, 0, 2)
  %v: i64[2, 1][2, 1] = aten.view.dtype(%f, i64)
  %e: i64[1]+2 = aten.select.int(%v, 0, 1)
  %w: i64[1]+2 = aten.fill_.Scalar(%e, 0)
  return %x
}

// == functionalize
// stage: functional
// input %storage_x: storage of %x
// output 0: mutation of %storage_x
// output 1: user as view f32[2, 3][4, 1] of input %storage_x
//
// graph(%x: f32[2, 3][4, 1], %storage_x: f32[7]) {
//   %w: f32[2, 3][4, 1] = aten.as_strided.default(%storage_x, [2, 3], [4, 1], 0)
//   %f: f32[2, 2][4, 1] = aten.slice.Tensor(%w, 1, 0, 2)
//   %v: i64[2, 1][2, 1] = aten.view.dtype(%f, i64)
//   %e: i64[1]+2 = aten.select.int(%v, 0, 1)
//   %w_1: i64[1]+2 = aten.fill.Scalar(%e, 0)
//   %w_2: f32[7] = aten.detach.default(%storage_x)
//   %w_3: i64[1] = aten.clone.default(%w_1, memory_format=contiguous_format)
//   %w_4: f32[2] = aten.view.dtype(%w_3, f32)
//   %w_5: f32[7] = aten.slice_scatter.default(%w_2, %w_4, 0, 4, 6)
//   %v_1: f32[7] = restride.with_history.default(%w_5, %storage_x)
//   %v_2: f32[2, 3][4, 1] = aten.as_strided.default(%v_1, [2, 3], [4, 1], 0)
//   return %w_5, %v_2
// }

// == run
// input 0: f32[2, 3][4, 1]+0 = [0.0 1.0 2.0 0.0 0.0 6.0]
// output 0: f32[2, 3][4, 1]+0 = [0.0 1.0 2.0 0.0 0.0 6.0], on the storage of input 0
