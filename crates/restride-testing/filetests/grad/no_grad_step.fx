// A training step of quantized weights: rounded under no_grad, updated by the gradient of what was rounded.
// run: sgd
weight "w": f32[3] storage 0 parameter requires_grad
input %w: parameter "w"
graph(%w: f32[3], %x: f32[3]) {
  %q: f32[3] = aten.mul.Tensor(%w, 1)
  %r: f32[3] = aten.round.default(%q) !no_grad
  %c: f32[3] = aten.copy_.default(%q, %r) !no_grad
  %m: f32[3] = aten.mul.Tensor(%q, %x)
  %l: f32[] = aten.sum.default(%m)
  return %l
}

// == sgd
// stage: functional
// weight "optimizer.momentum_buffer.w": f32[3] storage 1
// weight "w": f32[3] storage 0 parameter requires_grad
// input %w: parameter "w"
// input %b_optimizer_momentum_buffer_w: buffer "optimizer.momentum_buffer.w"
// output 0: loss
// output 1: mutation of %w
// output 2: mutation of %b_optimizer_momentum_buffer_w
//
// graph(%w: f32[3], %b_optimizer_momentum_buffer_w: f32[3], %x: f32[3]) {
//   %q: f32[3] = aten.mul.Tensor(%w, 1)
//   %r: f32[3] = aten.round.default(%q) !no_grad
//   %m_1: f32[3] = aten.mul.Tensor(%r, %x)
//   %l: f32[] = aten.sum.default(%m_1)
//   %grad: f32[] = aten.full.default([], 1, dtype=f32)
//   %grad_1: f32[1] = aten.reshape.default(%grad, [1])
//   %grad_2: f32[3][0] = aten.expand.default(%grad_1, [3])
//   %grad_3: f32[3] = aten.mul.Tensor(%grad_2, %x)
//   %grad_4: f32[] = aten.full.default([], 1, dtype=f32)
//   %grad_5: f32[3] = aten.mul.Tensor(%grad_3, %grad_4)
//   %step: f32[3] = aten.mul.Tensor(%b_optimizer_momentum_buffer_w, 0.5)
//   %step_1: f32[3] = aten.add.Tensor(%step, %grad_5)
//   %step_2: f32[3] = aten.add.Tensor(%w, %step_1, alpha=-0.001)
//   return %l, %step_2, %step_1
// }
