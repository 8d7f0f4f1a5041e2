// Matrices that may be tall or wide: one formula has the parts of both, which may be empty.
// run: grad, run
// sizes: s0=2 s1=3
symbol s0 in [1, inf]
symbol s1 in [1, inf]
graph(%x: f32[s0, s1]) {
  %q: f32[s0, Min(s0, s1)][1, s0], %r: f32[Min(s0, s1), s1][1, Min(s0, s1)] = aten.linalg_qr.default(%x)
  %l: f32[] = aten.sum.default(%r)
  return %l
}

// == grad
// stage: functional
// symbol s0 in [1, inf]
// symbol s1 in [1, inf]
// output 0: loss
// output 1: gradient of %x
//
// graph(%x: f32[s0, s1]) {
//   %q: f32[s0, Min(s0, s1)][1, s0], %r: f32[Min(s0, s1), s1][1, Min(s0, s1)] = aten.linalg_qr.default(%x)
//   %l: f32[] = aten.sum.default(%r)
//   %grad: f32[] = aten.full.default([], 1, dtype=f32)
//   %grad_1: f32[1, 1] = aten.reshape.default(%grad, [1, 1])
//   %grad_2: f32[Min(s0, s1), s1][0, 0] = aten.expand.default(%grad_1, [Min(s0, s1), s1])
//   %grad_3: f32[Min(s0, s1), s1 + -1*Min(s0, s1)][0, 0] = aten.slice.Tensor(%grad_2, -1, Min(s0, s1), s1)
//   %grad_4: f32[s0, s1 + -1*Min(s0, s1)] = aten.matmul.default(%q, %grad_3)
//   %grad_5: f32[s0, s1 + -1*Min(s0, s1)][s1, 1]+Min(s0, s1) = aten.slice.Tensor(%x, -1, Min(s0, s1), s1)
//   %grad_6: f32[Min(s0, s1), s1 + -1*Min(s0, s1)][0, 0] = aten.slice.Tensor(%grad_2, -1, Min(s0, s1), s1)
//   %grad_7: f32[s1 + -1*Min(s0, s1), Min(s0, s1)][0, 0] = aten.transpose.int(%grad_6, -2, -1)
//   %grad_8: f32[s0, Min(s0, s1)] = aten.matmul.default(%grad_5, %grad_7)
//   %grad_9: f32[Min(s0, s1), Min(s0, s1)][1, Min(s0, s1)] = aten.slice.Tensor(%r, -1, 0, Min(s0, s1))
//   %grad_10: f32[Min(s0, s1), Min(s0, s1)][0, 0] = aten.slice.Tensor(%grad_2, -1, 0, Min(s0, s1))
//   %grad_11: f32[Min(s0, s1), Min(s0, s1)] = aten.transpose.int(%grad_9, -2, -1)
//   %grad_12: f32[Min(s0, s1), Min(s0, s1)] = aten.matmul.default(%grad_10, %grad_11)
//   %grad_13: f32[Min(s0, s1), s0] = aten.transpose.int(%q, -2, -1)
//   %grad_14: f32[Min(s0, s1), Min(s0, s1)] = aten.matmul.default(%grad_13, %grad_8)
//   %grad_15: f32[Min(s0, s1), Min(s0, s1)] = aten.sub.Tensor(%grad_12, %grad_14)
//   %grad_16: f32[Min(s0, s1), Min(s0, s1)] = aten.triu.default(%grad_15, 1)
//   %grad_17: f32[Min(s0, s1)][Min(s0, s1) + 1] = aten.diagonal.default(%grad_15, 0, -2, -1)
//   %grad_18: f32[Min(s0, s1), Min(s0, s1)][1, Min(s0, s1)] = aten.transpose.int(%grad_16, -2, -1)
//   %grad_19: f32[Min(s0, s1), Min(s0, s1)] = aten.add.Tensor(%grad_16, %grad_18)
//   %grad_20: f32[Min(s0, s1), Min(s0, s1)] = aten.diagonal_scatter.default(%grad_19, %grad_17, 0, -2, -1)
//   %grad_21: f32[s0, Min(s0, s1)] = aten.matmul.default(%q, %grad_20)
//   %grad_22: f32[s0, Min(s0, s1)] = aten.add.Tensor(%grad_21, %grad_8)
//   %grad_23: f32[Min(s0, s1), Min(s0, s1)] = aten.transpose.int(%grad_9, -2, -1)
//   %grad_24: f32[s0, Min(s0, s1)][1, s0] = aten.linalg_solve_triangular.default(%grad_23, %grad_22, upper=False, left=False)
//   %grad_25: f32[s0, s1] = aten.cat.default([%grad_24, %grad_4], -1)
//   return %l, %grad_25
// }

// == run
// input 0: f32[2, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// output 0: f32[][]+0 = [-15.0]
