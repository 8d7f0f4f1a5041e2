// Wider and narrower elements of memory that is not row-major.
// run: functionalize, run
graph(%x: f32[3, 2][1, 3]) {
  %n: f32[3, 2][1, 3] = aten.neg.default(%x)
  %t: f32[2, 3] = aten.t.default(%n)
  %f: f32[6] = aten.view.default(%t, [6])
  %v: i64[3] = aten.view.dtype(%f, i64)
  %e: i64[]+1 = aten.select.int(%v, 0, 1)
  %w: i64[]+1 = aten.fill_.Scalar(%e, 0)
  %g: f32[5]+1 = aten.slice.Tensor(%f, 0, 1, 6)
  %u: u8[20]+4 = aten.view.dtype(%g, u8)
  %z: u8[20]+4 = aten.fill_.Scalar(%u, 1)
  return %n
}

// == functionalize
// stage: functional
//
// graph(%x: f32[3, 2][1, 3]) {
//   %n: f32[3, 2][1, 3] = aten.neg.default(%x)
//   %t: f32[2, 3] = aten.t.default(%n)
//   %f: f32[6] = aten.view.default(%t, [6])
//   %v: i64[3] = aten.view.dtype(%f, i64)
//   %e: i64[]+1 = aten.select.int(%v, 0, 1)
//   %w: i64[]+1 = aten.fill.Scalar(%e, 0)
//   %w_1: f32[3, 2][1, 3] = aten.detach.default(%n)
//   %w_2: f32[6] = aten.as_strided.default(%w_1, [6], [1], 0)
//   %w_3: i64[3] = aten.view.dtype(%w_2, i64)
//   %w_4: i64[3] = aten.select_scatter.default(%w_3, %w, 0, 1)
//   %w_5: f32[6] = aten.view.dtype(%w_4, f32)
//   %w_6: f32[3, 2][1, 3] = aten.as_strided.default(%w_5, [3, 2], [1, 3], 0)
//   %z: f32[3, 2][1, 3] = restride.with_history.default(%w_6, %n)
//   %z_1: f32[6] = aten.as_strided.default(%z, [6], [1], 0)
//   %g: f32[5]+1 = aten.slice.Tensor(%z_1, 0, 1, 6)
//   %u: u8[20]+4 = aten.view.dtype(%g, u8)
//   %z_2: u8[20]+4 = aten.fill.Scalar(%u, 1)
//   %z_3: f32[5]+1 = aten.view.dtype(%z_2, f32)
//   %z_4: f32[3, 2][1, 3] = aten.as_strided_scatter.default(%w_6, %z_3, [5], [1], 1)
//   %v_1: f32[3, 2][1, 3] = restride.with_history.default(%z_4, %z)
//   return %v_1
// }

// == run
// input 0: f32[3, 2][1, 3]+0 = [0.0 3.0 1.0 4.0 2.0 5.0]
// output 0: f32[3, 2][1, 3]+0 = [-0.0 2.3694278276172396e-38 2.3694278276172396e-38 2.3694278276172396e-38 2.3694278276172396e-38 2.3694278276172396e-38]
