// The sizes of a gradient may be those of the call that it is of: rows of a pool over a symbolic length.
// run: grad, run
// sizes: s0=9
symbol s0 in [4, inf]
graph(%x: f32[1, 2, s0]) {
  %p: f32[1, 2, FloorDiv(s0, 2)] = aten.avg_pool1d.default(%x, [2], [2])
  %l: f32[] = aten.sum.default(%p)
  return %l
}

// == grad
// stage: functional
// symbol s0 in [4, inf]
// output 0: loss
// output 1: gradient of %x
//
// graph(%x: f32[1, 2, s0]) {
//   %p: f32[1, 2, 1, s0] = aten.unsqueeze.default(%x, -2)
//   %p_1: f32[1, 2, 1, FloorDiv(s0, 2)] = aten.avg_pool2d.default(%p, [1, 2], [1, 2])
//   %p_2: f32[1, 2, FloorDiv(s0, 2)] = aten.squeeze.dim(%p_1, -2)
//   %l: f32[] = aten.sum.default(%p_2)
//   %grad: f32[] = aten.full.default([], 1, dtype=f32)
//   %grad_1: f32[1, 1, 1] = aten.reshape.default(%grad, [1, 1, 1])
//   %grad_2: f32[1, 2, FloorDiv(s0, 2)][1, 0, 0] = aten.expand.default(%grad_1, [1, 2, FloorDiv(s0, 2)])
//   %grad_3: f32[2, FloorDiv(s0, 2), 1][0, 0, 1] = aten.permute.default(%grad_2, [1, 2, 0])
//   %grad_4: f32[1, 2, 1, FloorDiv(s0, 2)][0, 0, 0, 0] = aten.reshape.default(%grad_3, [1, 2, 1, FloorDiv(s0, 2)])
//   %grad_5: f32[1, 2, 1, s0] = aten.avg_pool2d_backward.default(%grad_4, %p, [1, 2], [1, 2], [0, 0], False, True, None)
//   %grad_6: f32[2, s0, 1, 1][s0, 1, 2*s0, s0] = aten.permute.default(%grad_5, [1, 3, 0, 2])
//   %grad_7: f32[1, 2, s0] = aten.reshape.default(%grad_6, [1, 2, s0])
//   return %l, %grad_7
// }

// == run
// input 0: f32[1, 2, 9][18, 9, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0]
// output 0: f32[][]+0 = [64.0]
