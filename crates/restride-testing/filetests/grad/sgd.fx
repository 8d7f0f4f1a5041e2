// run: sgd, adam
// Each parameter is updated behind its last reader; two names of one weight are one parameter with one update.
weight "p": f32[3, 3] storage 0 parameter requires_grad
weight "q": f32[3] storage 1 parameter requires_grad
weight "tied": f32[3, 3] storage 0 parameter requires_grad
weight "unused": f32[2] storage 2 parameter requires_grad
weight "frozen": f32[3] storage 3 parameter
input %p: parameter "p"
input %q: parameter "q"
input %tied: parameter "tied"
input %unused: parameter "unused"
input %frozen: parameter "frozen"
graph(%p: f32[3, 3], %q: f32[3], %tied: f32[3, 3], %unused: f32[2], %frozen: f32[3], %x: f32[2, 3]) {
  %mm: f32[2, 3] = aten.mm.default(%x, %p)
  %add: f32[2, 3] = aten.add.Tensor(%mm, %q)
  %mm_1: f32[2, 3] = aten.mm.default(%add, %tied)
  %mul: f32[2, 3] = aten.mul.Tensor(%mm_1, %frozen)
  %sum: f32[] = aten.sum.default(%mul)
  return %sum
}

// == sgd
// stage: functional
// weight "frozen": f32[3] storage 0 parameter
// weight "optimizer.momentum_buffer.p": f32[3, 3] storage 5
// weight "optimizer.momentum_buffer.q": f32[3] storage 4
// weight "p": f32[3, 3] storage 1 parameter requires_grad
// weight "q": f32[3] storage 2 parameter requires_grad
// weight "tied": f32[3, 3] storage 1 parameter requires_grad
// weight "unused": f32[2] storage 3 parameter requires_grad
// input %p: parameter "p"
// input %q: parameter "q"
// input %tied: parameter "tied"
// input %unused: parameter "unused"
// input %frozen: parameter "frozen"
// input %b_optimizer_momentum_buffer_q: buffer "optimizer.momentum_buffer.q"
// input %b_optimizer_momentum_buffer_p: buffer "optimizer.momentum_buffer.p"
// output 0: loss
// output 1: mutation of %p
// output 2: mutation of %q
// output 3: mutation of %b_optimizer_momentum_buffer_q
// output 4: mutation of %b_optimizer_momentum_buffer_p
//
// graph(
//   %p: f32[3, 3],
//   %q: f32[3],
//   %tied: f32[3, 3],
//   %unused: f32[2],
//   %frozen: f32[3],
//   %b_optimizer_momentum_buffer_q: f32[3],
//   %b_optimizer_momentum_buffer_p: f32[3, 3],
//   %x: f32[2, 3],
// ) {
//   %mm: f32[2, 3] = aten.mm.default(%x, %p)
//   %add: f32[2, 3] = aten.add.Tensor(%mm, %q)
//   %mm_1: f32[2, 3] = aten.mm.default(%add, %p)
//   %mul: f32[2, 3] = aten.mul.Tensor(%mm_1, %frozen)
//   %sum: f32[] = aten.sum.default(%mul)
//   %grad: f32[] = aten.full.default([], 1, dtype=f32)
//   %grad_1: f32[1, 1] = aten.reshape.default(%grad, [1, 1])
//   %grad_2: f32[2, 3][0, 0] = aten.expand.default(%grad_1, [2, 3])
//   %grad_3: f32[2, 3] = aten.mul.Tensor(%grad_2, %frozen)
//   %grad_4: f32[3, 3][1, 3] = aten.transpose.int(%p, -2, -1)
//   %grad_5: f32[2, 3] = aten.mm.default(%grad_3, %grad_4)
//   %grad_6: f32[3, 2][1, 3] = aten.transpose.int(%add, -2, -1)
//   %grad_7: f32[3, 3] = aten.mm.default(%grad_6, %grad_3)
//   %grad_8: f32[3] = aten.sum.dim_IntList(%grad_5, [0])
//   %step: f32[3] = aten.mul.Tensor(%b_optimizer_momentum_buffer_q, 0.5)
//   %step_1: f32[3] = aten.add.Tensor(%step, %grad_8)
//   %step_2: f32[3] = aten.add.Tensor(%q, %step_1, alpha=-0.001)
//   %grad_9: f32[3, 2][1, 3] = aten.transpose.int(%x, -2, -1)
//   %grad_10: f32[3, 3] = aten.mm.default(%grad_9, %grad_5)
//   %grad_11: f32[3, 3] = aten.add.Tensor(%grad_7, %grad_10)
//   %step_3: f32[3, 3] = aten.mul.Tensor(%b_optimizer_momentum_buffer_p, 0.5)
//   %step_4: f32[3, 3] = aten.add.Tensor(%step_3, %grad_11)
//   %step_5: f32[3, 3] = aten.add.Tensor(%p, %step_4, alpha=-0.001)
//   return %sum, %step_5, %step_2, %step_1, %step_4
// }

// == adam
// stage: functional
// weight "frozen": f32[3] storage 0 parameter
// weight "optimizer.exp_avg.p": f32[3, 3] storage 7
// weight "optimizer.exp_avg.q": f32[3] storage 4
// weight "optimizer.exp_avg_sq.p": f32[3, 3] storage 8
// weight "optimizer.exp_avg_sq.q": f32[3] storage 5
// weight "optimizer.step": f32[] storage 6
// weight "p": f32[3, 3] storage 1 parameter requires_grad
// weight "q": f32[3] storage 2 parameter requires_grad
// weight "tied": f32[3, 3] storage 1 parameter requires_grad
// weight "unused": f32[2] storage 3 parameter requires_grad
// input %p: parameter "p"
// input %q: parameter "q"
// input %tied: parameter "tied"
// input %unused: parameter "unused"
// input %frozen: parameter "frozen"
// input %b_optimizer_exp_avg_q: buffer "optimizer.exp_avg.q"
// input %b_optimizer_exp_avg_sq_q: buffer "optimizer.exp_avg_sq.q"
// input %b_optimizer_step: buffer "optimizer.step"
// input %b_optimizer_exp_avg_p: buffer "optimizer.exp_avg.p"
// input %b_optimizer_exp_avg_sq_p: buffer "optimizer.exp_avg_sq.p"
// output 0: loss
// output 1: mutation of %p
// output 2: mutation of %q
// output 3: mutation of %b_optimizer_exp_avg_q
// output 4: mutation of %b_optimizer_exp_avg_sq_q
// output 5: mutation of %b_optimizer_step
// output 6: mutation of %b_optimizer_exp_avg_p
// output 7: mutation of %b_optimizer_exp_avg_sq_p
//
// graph(
//   %p: f32[3, 3],
//   %q: f32[3],
//   %tied: f32[3, 3],
//   %unused: f32[2],
//   %frozen: f32[3],
//   %b_optimizer_exp_avg_q: f32[3],
//   %b_optimizer_exp_avg_sq_q: f32[3],
//   %b_optimizer_step: f32[],
//   %b_optimizer_exp_avg_p: f32[3, 3],
//   %b_optimizer_exp_avg_sq_p: f32[3, 3],
//   %x: f32[2, 3],
// ) {
//   %mm: f32[2, 3] = aten.mm.default(%x, %p)
//   %add: f32[2, 3] = aten.add.Tensor(%mm, %q)
//   %mm_1: f32[2, 3] = aten.mm.default(%add, %p)
//   %mul: f32[2, 3] = aten.mul.Tensor(%mm_1, %frozen)
//   %sum: f32[] = aten.sum.default(%mul)
//   %grad: f32[] = aten.full.default([], 1, dtype=f32)
//   %grad_1: f32[1, 1] = aten.reshape.default(%grad, [1, 1])
//   %grad_2: f32[2, 3][0, 0] = aten.expand.default(%grad_1, [2, 3])
//   %grad_3: f32[2, 3] = aten.mul.Tensor(%grad_2, %frozen)
//   %grad_4: f32[3, 3][1, 3] = aten.transpose.int(%p, -2, -1)
//   %grad_5: f32[2, 3] = aten.mm.default(%grad_3, %grad_4)
//   %grad_6: f32[3, 2][1, 3] = aten.transpose.int(%add, -2, -1)
//   %grad_7: f32[3, 3] = aten.mm.default(%grad_6, %grad_3)
//   %grad_8: f32[3] = aten.sum.dim_IntList(%grad_5, [0])
//   %step: f32[3] = aten.lerp.Scalar(%b_optimizer_exp_avg_q, %grad_8, 0.09999999999999998)
//   %step_1: f32[3] = aten.mul.Tensor(%b_optimizer_exp_avg_sq_q, 0.999)
//   %step_2: f32[3] = aten.addcmul.default(%step_1, %grad_8, %grad_8, value=0.0010000000000000009)
//   %step_3: f32[] = aten.add.Tensor(%b_optimizer_step, 1)
//   %step_4: f64[] = aten._to_copy.default(%step_3, dtype=f64)
//   %step_5: f64[] = aten.pow.Scalar(0.9, %step_4)
//   %step_6: f64[] = aten.rsub.Scalar(%step_5, 1)
//   %step_7: f64[] = aten.reciprocal.default(%step_6)
//   %step_8: f64[] = aten.mul.Tensor(%step_7, -0.001)
//   %step_9: f64[] = aten._to_copy.default(%step_3, dtype=f64)
//   %step_10: f64[] = aten.pow.Scalar(0.999, %step_9)
//   %step_11: f64[] = aten.rsub.Scalar(%step_10, 1)
//   %step_12: f64[] = aten.sqrt.default(%step_11)
//   %step_13: f32[3] = aten.sqrt.default(%step_2)
//   %step_14: f32[3] = aten.div.Tensor(%step_13, %step_12)
//   %step_15: f32[3] = aten.add.Tensor(%step_14, 1e-8)
//   %step_16: f32[3] = aten.mul.Tensor(%step, %step_8)
//   %step_17: f32[3] = aten.div.Tensor(%step_16, %step_15)
//   %step_18: f32[3] = aten.add.Tensor(%q, %step_17)
//   %grad_9: f32[3, 2][1, 3] = aten.transpose.int(%x, -2, -1)
//   %grad_10: f32[3, 3] = aten.mm.default(%grad_9, %grad_5)
//   %grad_11: f32[3, 3] = aten.add.Tensor(%grad_7, %grad_10)
//   %step_19: f32[3, 3] = aten.lerp.Scalar(%b_optimizer_exp_avg_p, %grad_11, 0.09999999999999998)
//   %step_20: f32[3, 3] = aten.mul.Tensor(%b_optimizer_exp_avg_sq_p, 0.999)
//   %step_21: f32[3, 3] = aten.addcmul.default(%step_20, %grad_11, %grad_11, value=0.0010000000000000009)
//   %step_22: f32[3, 3] = aten.sqrt.default(%step_21)
//   %step_23: f32[3, 3] = aten.div.Tensor(%step_22, %step_12)
//   %step_24: f32[3, 3] = aten.add.Tensor(%step_23, 1e-8)
//   %step_25: f32[3, 3] = aten.mul.Tensor(%step_19, %step_8)
//   %step_26: f32[3, 3] = aten.div.Tensor(%step_25, %step_24)
//   %step_27: f32[3, 3] = aten.add.Tensor(%p, %step_26)
//   return %sum, %step_27, %step_18, %step, %step_2, %step_3, %step_19, %step_21
// }
