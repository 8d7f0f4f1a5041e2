// A write through wider elements into memory that ends inside of one.
// run: functionalize, run
graph(%x: f32[3]) {
  %n: f32[3] = aten.neg.default(%x)
  %s: f32[2] = aten.slice.Tensor(%n, 0, 0, 2)
  %v: i64[1] = aten.view.dtype(%s, i64)
  %w: i64[1] = aten.fill_.Scalar(%v, 0)
  %y: f32[3] = aten.add_.Tensor(%n, 1)
  return %n, %v
}

// == functionalize
// stage: functional
// output 0: user as view f32[3] of base 2
// output 1: user as view i64[1] of base 2
// output 2: base
//
// graph(%x: f32[3]) {
//   %n: f32[3] = aten.neg.default(%x)
//   %s: f32[2] = aten.slice.Tensor(%n, 0, 0, 2)
//   %v: i64[1] = aten.view.dtype(%s, i64)
//   %w: i64[1] = aten.fill.Scalar(%v, 0)
//   %w_1: f32[3] = aten.detach.default(%n)
//   %w_2: i64[1] = aten.clone.default(%w, memory_format=contiguous_format)
//   %w_3: f32[2] = aten.view.dtype(%w_2, f32)
//   %w_4: f32[3] = aten.slice_scatter.default(%w_1, %w_3, 0, 0, 2)
//   %y: f32[3] = restride.with_history.default(%w_4, %n)
//   %y_1: f32[3] = aten.add.Tensor(%y, 1)
//   %v_1: f32[2] = aten.slice.Tensor(%y_1, 0, 0, 2)
//   %v_2: i64[1] = aten.view.dtype(%v_1, i64)
//   return %y_1, %v_2, %y_1
// }

// == run
// input 0: f32[3][1]+0 = [0.0 1.0 2.0]
// output 0: f32[3][1]+0 = [1.0 1.0 -1.0]
// output 1: i64[1][1]+0 = [4575657222473777152], on the storage of output 0
