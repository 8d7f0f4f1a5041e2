// Windows of a contiguous tensor overlap: each element gets the sum over its windows.
// run: grad, run
// sizes: s0=4
symbol s0 in [3, inf]
graph(%x: f32[s0]) {
  %w: f32[s0 - 1, 2][1, 1] = aten.as_strided.default(%x, [s0 - 1, 2], [1, 1])
  %l: f32[] = aten.sum.default(%w)
  return %l
}

// == grad
// stage: functional
// symbol s0 in [3, inf]
// output 0: loss
// output 1: gradient of %x
//
// graph(%x: f32[s0]) {
//   %l: f32[s0 + -1, 2][1, 1] = aten.as_strided.default(%x, [s0 + -1, 2], [1, 1], 0)
//   %l_1: f32[] = aten.sum.default(%l)
//   %grad: f32[] = aten.full.default([], 1, dtype=f32)
//   %grad_1: f32[1, 1] = aten.reshape.default(%grad, [1, 1])
//   %grad_2: f32[s0 + -1, 2][0, 0] = aten.expand.default(%grad_1, [s0 + -1, 2])
//   %grad_3: f32[s0] = aten.full.default([s0], 0, dtype=f32)
//   %grad_4: i64[s0] = aten.arange.default(s0)
//   %grad_5: i64[s0 + -1, 2][1, 1] = aten.as_strided.default(%grad_4, [s0 + -1, 2], [1, 1], 0)
//   %grad_6: i64[2*s0 + -2] = aten.reshape.default(%grad_5, [2*s0 + -2])
//   %grad_7: f32[2*s0 + -2][0] = aten.reshape.default(%grad_2, [2*s0 + -2])
//   %grad_8: f32[s0] = aten.index_add.default(%grad_3, 0, %grad_6, %grad_7)
//   return %l_1, %grad_8
// }

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[][]+0 = [9.0]
