// tmp[2].fill_ on what is no input.
// run: functionalize, run
graph(%x: f32[4]) {
  %t: f32[4] = aten.zeros.default([4], dtype=f32)
  %e: f32[]+2 = aten.select.int(%t, 0, 2)
  %w: f32[]+2 = aten.fill_.Scalar(%e, 1)
  %y: f32[4] = aten.add.Tensor(%t, %x)
  return %y
}

// == functionalize
// stage: functional
//
// graph(%x: f32[4]) {
//   %t: f32[4] = aten.zeros.default([4], dtype=f32)
//   %e: f32[]+2 = aten.select.int(%t, 0, 2)
//   %w: f32[]+2 = aten.fill.Scalar(%e, 1)
//   %w_1: f32[4] = aten.select_scatter.default(%t, %w, 0, 2)
//   %y: f32[4] = aten.add.Tensor(%w_1, %x)
//   return %y
// }

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[4][1]+0 = [0.0 1.0 3.0 3.0]
