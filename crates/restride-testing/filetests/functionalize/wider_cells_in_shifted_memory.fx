// A write through wider elements into an input that begins inside of one.
// run: functionalize, run
graph(%x: f32[5]+1) {
  %s: f32[4]+2 = aten.slice.Tensor(%x, 0, 1, 5)
  %v: i64[2]+1 = aten.view.dtype(%s, i64)
  %e: i64[]+2 = aten.select.int(%v, 0, 1)
  %w: i64[]+2 = aten.fill_.Scalar(%e, 0)
  %y: f32[5]+1 = aten.add_.Tensor(%x, 1)
  return %y
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: user as view f32[5]+1 of input %x
//
// graph(%x: f32[5]+1) {
//   %s: f32[4]+2 = aten.slice.Tensor(%x, 0, 1, 5)
//   %v: i64[2]+1 = aten.view.dtype(%s, i64)
//   %e: i64[]+2 = aten.select.int(%v, 0, 1)
//   %w: i64[]+2 = aten.fill.Scalar(%e, 0)
//   %w_1: f32[5]+1 = aten.detach.default(%x)
//   %w_2: f32[4]+2 = aten.slice.Tensor(%w_1, 0, 1, 5)
//   %w_3: i64[2]+1 = aten.view.dtype(%w_2, i64)
//   %w_4: i64[2]+1 = aten.select_scatter.default(%w_3, %w, 0, 1)
//   %w_5: f32[4]+2 = aten.view.dtype(%w_4, f32)
//   %w_6: f32[5]+1 = aten.slice_scatter.default(%w_1, %w_5, 0, 1, 5)
//   %y: f32[5]+1 = restride.with_history.default(%w_6, %x)
//   %y_1: f32[5]+1 = aten.add.Tensor(%y, 1)
//   return %y_1, %y_1
// }

// == run
// input 0: f32[5][1]+1 = [2.0 3.0 4.0 1.0 1.0]
// output 0: f32[5][1]+1 = [2.0 3.0 4.0 1.0 1.0], on the storage of input 0
