// Adam of a complex parameter is Adam of its real and imaginary parts.
// run: adam
weight "z": c64[2] storage 0 parameter requires_grad
input %z: parameter "z"
graph(%z: c64[2]) {
  %a: f32[2] = aten.abs.default(%z)
  %l: f32[] = aten.sum.default(%a)
  return %l
}

// == adam
// stage: functional
// weight "optimizer.exp_avg.z": c64[2] storage 1
// weight "optimizer.exp_avg_sq.z": c64[2] storage 2
// weight "optimizer.step": f32[] storage 3
// weight "z": c64[2] storage 0 parameter requires_grad
// input %z: parameter "z"
// input %b_optimizer_exp_avg_z: buffer "optimizer.exp_avg.z"
// input %b_optimizer_exp_avg_sq_z: buffer "optimizer.exp_avg_sq.z"
// input %b_optimizer_step: buffer "optimizer.step"
// output 0: loss
// output 1: mutation of %z
// output 2: mutation of %b_optimizer_exp_avg_z
// output 3: mutation of %b_optimizer_exp_avg_sq_z
// output 4: mutation of %b_optimizer_step
//
// graph(%z: c64[2], %b_optimizer_exp_avg_z: c64[2], %b_optimizer_exp_avg_sq_z: c64[2], %b_optimizer_step: f32[]) {
//   %a: f32[2] = aten.abs.default(%z)
//   %l: f32[] = aten.sum.default(%a)
//   %grad: f32[] = aten.full.default([], 1, dtype=f32)
//   %grad_1: f32[1] = aten.reshape.default(%grad, [1])
//   %grad_2: f32[2][0] = aten.expand.default(%grad_1, [2])
//   %grad_3: c64[2] = aten.sgn.default(%z)
//   %grad_4: c64[2] = aten.mul.Tensor(%grad_2, %grad_3)
//   %step: f32[2, 2] = aten.view_as_real.default(%grad_4)
//   %step_1: f32[2, 2] = aten.view_as_real.default(%z)
//   %step_2: f32[2, 2] = aten.view_as_real.default(%b_optimizer_exp_avg_z)
//   %step_3: f32[2, 2] = aten.lerp.Scalar(%step_2, %step, 0.09999999999999998)
//   %step_4: c64[2] = aten.view_as_complex.default(%step_3)
//   %step_5: f32[2, 2] = aten.view_as_real.default(%b_optimizer_exp_avg_sq_z)
//   %step_6: f32[2, 2] = aten.mul.Tensor(%step_5, 0.999)
//   %step_7: f32[2, 2] = aten.addcmul.default(%step_6, %step, %step, value=0.0010000000000000009)
//   %step_8: c64[2] = aten.view_as_complex.default(%step_7)
//   %step_9: f32[] = aten.add.Tensor(%b_optimizer_step, 1)
//   %step_10: f64[] = aten._to_copy.default(%step_9, dtype=f64)
//   %step_11: f64[] = aten.pow.Scalar(0.9, %step_10)
//   %step_12: f64[] = aten.rsub.Scalar(%step_11, 1)
//   %step_13: f64[] = aten.reciprocal.default(%step_12)
//   %step_14: f64[] = aten.mul.Tensor(%step_13, -0.001)
//   %step_15: f64[] = aten._to_copy.default(%step_9, dtype=f64)
//   %step_16: f64[] = aten.pow.Scalar(0.999, %step_15)
//   %step_17: f64[] = aten.rsub.Scalar(%step_16, 1)
//   %step_18: f64[] = aten.sqrt.default(%step_17)
//   %step_19: f32[2, 2] = aten.sqrt.default(%step_7)
//   %step_20: f32[2, 2] = aten.div.Tensor(%step_19, %step_18)
//   %step_21: f32[2, 2] = aten.add.Tensor(%step_20, 1e-8)
//   %step_22: f32[2, 2] = aten.mul.Tensor(%step_3, %step_14)
//   %step_23: f32[2, 2] = aten.div.Tensor(%step_22, %step_21)
//   %step_24: f32[2, 2] = aten.add.Tensor(%step_1, %step_23)
//   %step_25: c64[2] = aten.view_as_complex.default(%step_24)
//   return %l, %step_25, %step_4, %step_8, %step_9
// }
