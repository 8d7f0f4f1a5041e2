// A composition over a list of tensors, and out= of an operator that takes a list.
// run: functionalize, run
graph(%x: f32[2], %y: f32[1, 3]) {
  %d: f32[2, 5] = aten.block_diag.default([%x, %y])
  %v: f32[5]+5 = aten.select.int(%d, 0, 1)
  %w: f32[5]+5 = aten.add_.Tensor(%v, 1)
  %e: f32[0] = aten.empty.memory_format([0], dtype=f32)
  %c: f32[4] = aten.cat.out([%x, %x], 0, out=%e)
  %z: f32[4] = aten.mul_.Tensor(%c, 2)
  return %d, %e
}

// == functionalize
// stage: functional
//
// graph(%x: f32[2], %y: f32[1, 3]) {
//   %d: f32[2, 5] = aten.block_diag.default([%x, %y])
//   %v: f32[5]+5 = aten.select.int(%d, 0, 1)
//   %w: f32[5]+5 = aten.add.Tensor(%v, 1)
//   %w_1: f32[2, 5] = aten.select_scatter.default(%d, %w, 0, 1)
//   %c: f32[4] = aten.cat.default([%x, %x])
//   %z: f32[4] = aten.mul.Tensor(%c, 2)
//   return %w_1, %z
// }

// == run
// input 0: f32[2][1]+0 = [0.0 1.0]
// input 1: f32[1, 3][3, 1]+0 = [0.0 1.0 2.0]
// output 0: f32[2, 5][5, 1]+0 = [0.0 1.0 0.0 0.0 0.0 1.0 1.0 1.0 2.0 3.0]
// output 1: f32[4][1]+0 = [0.0 2.0 0.0 2.0]
