// Label smoothing divides a constant by a symbolic number of classes.
// run: grad, run
// sizes: s0=2 s1=3
symbol s0 in [1, inf]
symbol s1 in [1, inf]
graph(%x: f32[s0, s1], %y: i64[s0]) {
  %l: f32[] = aten.cross_entropy_loss.default(%x, %y, None, 1, -100, 0.1)
  return %l
}

// == grad
// stage: functional
// symbol s0 in [1, inf]
// symbol s1 in [1, inf]
// output 0: loss
// output 1: gradient of %x
//
// graph(%x: f32[s0, s1], %y: i64[s0]) {
//   %l: f32[s0, s1] = aten.log_softmax.int(%x, 1, f32)
//   %l_1: f32[], %l_2: f32[] = aten.nll_loss_forward.default(%l, %y, None, 1, -100)
//   %l_3: f32[s0] = aten.sum.dim_IntList(%l, [1])
//   %l_4: f32[s0] = aten.neg.default(%l_3)
//   %l_5: bool[s0] = aten.eq.Scalar(%y, -100)
//   %l_6: f32[s0] = aten.masked_fill.Scalar(%l_4, %l_5, 0)
//   %l_7: bool[s0] = aten.logical_not.default(%l_5)
//   %l_8: f32[s0] = aten._to_copy.default(%l_7, dtype=f32)
//   %l_9: f32[] = aten.sum.default(%l_8)
//   %l_10: f32[] = aten.sum.default(%l_6)
//   %l_11: f32[] = aten.div.Tensor(%l_10, %l_9)
//   %l_12: f32[] = aten.mul.Tensor(%l_1, 0.9)
//   %l_13: f32[] = aten.mul.Tensor(%l_11, TrueDiv(0.1, s1))
//   %l_15: f32[] = aten.add.Tensor(%l_12, %l_13)
//   %grad: f32[] = aten.full.default([], 1, dtype=f32)
//   %grad_1: f32[] = aten.full.default([], TrueDiv(0.1, s1), dtype=f32)
//   %grad_2: f32[] = aten.mul.Tensor(%grad, %grad_1)
//   %grad_3: f32[] = aten.full.default([], 0.9, dtype=f32)
//   %grad_4: f32[] = aten.mul.Tensor(%grad, %grad_3)
//   %grad_5: f32[] = aten.div.Tensor(%grad_2, %l_9)
//   %grad_6: f32[1] = aten.reshape.default(%grad_5, [1])
//   %grad_7: f32[s0][0] = aten.expand.default(%grad_6, [s0])
//   %grad_8: f32[s0] = aten.masked_fill.Scalar(%grad_7, %l_5, 0)
//   %grad_9: f32[s0] = aten.neg.default(%grad_8)
//   %grad_10: f32[s0, 1] = aten.reshape.default(%grad_9, [s0, 1])
//   %grad_11: f32[s0, s1][1, 0] = aten.expand.default(%grad_10, [s0, s1])
//   %grad_12: f32[s0, s1] = aten.nll_loss_backward.default(%grad_4, %l, %y, None, 1, -100, %l_2)
//   %grad_13: f32[s0, s1] = aten.add.Tensor(%grad_11, %grad_12)
//   %grad_14: f32[s0, s1] = aten._log_softmax_backward_data.default(%grad_13, %l, 1, f32)
//   return %l_15, %grad_14
// }

// == run
// input 0: f32[2, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// input 1: i64[2][1]+0 = [0 1]
// output 0: f32[][]+0 = [1.8576061725616455]
