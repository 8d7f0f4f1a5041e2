// A transform of a symbolic length pads its operand, or truncates it: one call for all lengths.
// run: grad, run
// sizes: s0=2
symbol s0 in [1, inf]
graph(%x: f32[3], %y: f32[s0]) {
  %f: c64[FloorDiv(s0, 2) + 1] = aten.fft_rfft.default(%x, s0)
  %r: f32[FloorDiv(s0, 2) + 1] = aten.abs.default(%f)
  %l: f32[] = aten.sum.default(%r)
  return %l
}

// == grad
// stage: functional
// symbol s0 in [1, inf]
// output 0: loss
// output 1: gradient of %x
// output 2: gradient of %y
//
// graph(%x: f32[3], %y: f32[s0]) {
//   %f: f32[s0] = aten.constant_pad_nd.default(%x, [0, s0 + -3])
//   %f_2: c64[FloorDiv(s0, 2) + 1] = aten._fft_r2c.default(%f, [0], 0, True)
//   %r: f32[FloorDiv(s0, 2) + 1] = aten.abs.default(%f_2)
//   %l: f32[] = aten.sum.default(%r)
//   %grad: f32[] = aten.full.default([], 1, dtype=f32)
//   %grad_1: f32[1] = aten.reshape.default(%grad, [1])
//   %grad_2: f32[FloorDiv(s0, 2) + 1][0] = aten.expand.default(%grad_1, [FloorDiv(s0, 2) + 1])
//   %grad_3: c64[FloorDiv(s0, 2) + 1] = aten.sgn.default(%f_2)
//   %grad_4: c64[FloorDiv(s0, 2) + 1] = aten.mul.Tensor(%grad_2, %grad_3)
//   %grad_5: c64[s0] = aten.constant_pad_nd.default(%grad_4, [0, s0 + -1*FloorDiv(s0, 2) + -1])
//   %grad_6: c64[s0] = aten._fft_c2c.default(%grad_5, [0], 0, False)
//   %grad_7: f32[s0, 2] = aten.view_as_real.default(%grad_6)
//   %grad_8: f32[s0][2] = aten.select.int(%grad_7, -1, 0)
//   %grad_9: f32[3] = aten.constant_pad_nd.default(%grad_8, [0, -1*s0 + 3])
//   %grad_10: f32[s0] = aten.full.default([s0], 0, dtype=f32)
//   return %l, %grad_9, %grad_10
// }

// == run
// input 0: f32[3][1]+0 = [0.0 1.0 2.0]
// input 1: f32[2][1]+0 = [0.0 1.0]
// output 0: f32[][]+0 = [2.0]
