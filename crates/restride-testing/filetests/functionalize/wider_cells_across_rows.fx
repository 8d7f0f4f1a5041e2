// Wider elements that reach over the end of a row.
// run: functionalize, run
graph(%x: f32[2, 3]) {
  %f: f32[6] = aten.view.default(%x, [6])
  %v: i64[3] = aten.view.dtype(%f, i64)
  %e: i64[]+1 = aten.select.int(%v, 0, 1)
  %w: i64[]+1 = aten.fill_.Scalar(%e, 0)
  return %x
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: user as view f32[2, 3] of input %x
//
// graph(%x: f32[2, 3]) {
//   %f: f32[6] = aten.view.default(%x, [6])
//   %v: i64[3] = aten.view.dtype(%f, i64)
//   %e: i64[]+1 = aten.select.int(%v, 0, 1)
//   %w: i64[]+1 = aten.fill.Scalar(%e, 0)
//   %w_1: f32[2, 3] = aten.detach.default(%x)
//   %w_2: f32[6] = aten.reshape.default(%w_1, [6])
//   %w_3: i64[3] = aten.view.dtype(%w_2, i64)
//   %w_4: i64[3] = aten.select_scatter.default(%w_3, %w, 0, 1)
//   %w_5: f32[6] = aten.view.dtype(%w_4, f32)
//   %w_6: f32[2, 3] = aten.as_strided.default(%w_5, [2, 3], [3, 1], 0)
//   %v_1: f32[2, 3] = restride.with_history.default(%w_6, %x)
//   return %w_6, %v_1
// }

// == run
// input 0: f32[2, 3][3, 1]+0 = [0.0 1.0 0.0 0.0 4.0 5.0]
// output 0: f32[2, 3][3, 1]+0 = [0.0 1.0 0.0 0.0 4.0 5.0], on the storage of input 0
