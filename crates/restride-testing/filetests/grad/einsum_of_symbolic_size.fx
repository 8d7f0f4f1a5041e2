// A batch of one is composed as any other: PyTorch's own steps for sizes of 1 are others.
// run: grad, run
// sizes: s0=1 s1=2
symbol s0 in [1, 64]
symbol s1 in [0, inf]
graph(%h: f32[s0, s1, 4], %c: f32[s0, 4], %w: f32[1, 4]) {
  %e: f32[s0, s1] = aten.einsum.default("bdn,bn->bd", [%h, %c])
  %f: f32[s0, 4] = aten.einsum.default("bdn,kn->bn", [%h, %w])
  %l: f32[] = aten.sum.default(%e)
  %m: f32[] = aten.sum.default(%f)
  %n: f32[] = aten.add.Tensor(%l, %m)
  return %n
}

// == grad
// stage: functional
// symbol s0 in [1, 64]
// symbol s1 in [0, inf]
// output 0: loss
// output 1: gradient of %h
// output 2: gradient of %c
// output 3: gradient of %w
//
// graph(%h: f32[s0, s1, 4], %c: f32[s0, 4], %w: f32[1, 4]) {
//   %e: f32[s0, s1, 4] = aten.permute.default(%h, [0, 1, 2])
//   %e_1: f32[s0, 4, 1] = aten.unsqueeze.default(%c, 2)
//   %e_2: f32[s0, 1, 4][4, 1, 1] = aten.permute.default(%e_1, [0, 2, 1])
//   %e_3: f32[s0, s1, 4] = aten.permute.default(%e, [0, 1, 2])
//   %e_4: f32[s0, s1, 4] = aten.reshape.default(%e_3, [s0, s1, 4])
//   %e_5: f32[s0, 4, 1] = aten.permute.default(%e_2, [0, 2, 1])
//   %e_6: f32[s0, 4, 1] = aten.reshape.default(%e_5, [s0, 4, 1])
//   %e_7: f32[s0, s1, 1] = aten.bmm.default(%e_4, %e_6)
//   %e_8: f32[s0, s1, 1] = aten.view.default(%e_7, [s0, s1, 1])
//   %e_9: f32[s0, s1, 1] = aten.permute.default(%e_8, [0, 1, 2])
//   %e_11: f32[s0, s1] = aten.view.default(%e_9, [s0, s1])
//   %f: f32[s0, s1, 4, 1] = aten.unsqueeze.default(%h, 3)
//   %f_1: f32[s0, 4, s1, 1][4*s1, 1, 4, 1] = aten.permute.default(%f, [0, 2, 1, 3])
//   %f_2: f32[1, 4, 1] = aten.unsqueeze.default(%w, 2)
//   %f_3: f32[1, 4, 1, 1] = aten.unsqueeze.default(%f_2, 3)
//   %f_4: f32[1, 4, 1, 1][1, 1, 1, 4] = aten.permute.default(%f_3, [2, 1, 3, 0])
//   %f_5: f32[s0, 4, 1, 1] = aten.sum.dim_IntList(%f_1, [2], True)
//   %f_6: f32[1, 4, 1, 1] = aten.sum.dim_IntList(%f_4, [3], True)
//   %f_7: f32[s0, 4, 1, 1] = aten.mul.Tensor(%f_5, %f_6)
//   %f_9: f32[s0, 4] = aten.view.default(%f_7, [s0, 4])
//   %l: f32[] = aten.sum.default(%e_11)
//   %m: f32[] = aten.sum.default(%f_9)
//   %n: f32[] = aten.add.Tensor(%l, %m)
//   %grad: f32[] = aten.full.default([], 1, dtype=f32)
//   %grad_1: f32[1, 1] = aten.reshape.default(%grad, [1, 1])
//   %grad_2: f32[s0, 4][0, 0] = aten.expand.default(%grad_1, [s0, 4])
//   %grad_3: f32[1, 1] = aten.reshape.default(%grad, [1, 1])
//   %grad_4: f32[s0, s1][0, 0] = aten.expand.default(%grad_3, [s0, s1])
//   %grad_5: f32[s0, 4, 1, 1][0, 0, 0, 0] = aten.reshape.default(%grad_2, [s0, 4, 1, 1])
//   %grad_6: f32[s0, 4, 1, 1] = aten.mul.Tensor(%grad_5, %f_6)
//   %grad_7: f32[s0, 4, 1, 1] = aten.mul.Tensor(%grad_5, %f_5)
//   %grad_8: f32[1, 4, 1, 1] = aten.sum.dim_IntList(%grad_7, [0], True)
//   %grad_9: f32[s0, 4, s1, 1][4, 1, 0, 1] = aten.expand.default(%grad_6, [s0, 4, s1, 1])
//   %grad_10: f32[4, 1, 1, 1][1, 4, 1, 1] = aten.permute.default(%grad_8, [1, 0, 2, 3])
//   %grad_11: f32[1, 4, 1, 1] = aten.reshape.default(%grad_10, [1, 4, 1, 1])
//   %grad_12: f32[4, 1, 1, 1][1, 4, 1, 1] = aten.permute.default(%grad_11, [1, 0, 2, 3])
//   %grad_13: f32[1, 4, 1] = aten.reshape.default(%grad_12, [1, 4, 1])
//   %grad_14: f32[4, 1, 1][1, 4, 1] = aten.permute.default(%grad_13, [1, 0, 2])
//   %grad_15: f32[1, 4] = aten.reshape.default(%grad_14, [1, 4])
//   %grad_16: f32[s0, s1, 4, 1][4, 0, 1, 1] = aten.permute.default(%grad_9, [0, 2, 1, 3])
//   %grad_17: f32[s0, s1, 4][4, 0, 1] = aten.reshape.default(%grad_16, [s0, s1, 4])
//   %grad_18: f32[s0, s1, 1][0, 0, 0] = aten.reshape.default(%grad_4, [s0, s1, 1])
//   %grad_19: f32[s0, 1, 4][4, 1, 1] = aten.transpose.int(%e_6, -2, -1)
//   %grad_20: f32[s0, s1, 4] = aten.bmm.default(%grad_18, %grad_19)
//   %grad_21: f32[s0, 4, s1][4*s1, 1, 4] = aten.transpose.int(%e_4, -2, -1)
//   %grad_22: f32[s0, 4, 1] = aten.bmm.default(%grad_21, %grad_18)
//   %grad_23: f32[s0, 1, 4] = aten.reshape.default(%grad_22, [s0, 1, 4])
//   %grad_24: f32[s0, 4, 1][4, 1, 4] = aten.permute.default(%grad_23, [0, 2, 1])
//   %grad_25: f32[s0, 4] = aten.reshape.default(%grad_24, [s0, 4])
//   %grad_26: f32[s0, s1, 4] = aten.add.Tensor(%grad_17, %grad_20)
//   return %n, %grad_26, %grad_25, %grad_15
// }

// == run
// input 0: f32[1, 2, 4][8, 4, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0]
// input 1: f32[1, 4][4, 1]+0 = [0.0 1.0 2.0 3.0]
// input 2: f32[1, 4][4, 1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[][]+0 = [104.0]
