// run: sgd
// A parameter whose memory another one shares in part cannot be updated alone.
weight "p": f32[3, 3] storage 0 parameter requires_grad
weight "row": f32[3] storage 0 parameter requires_grad
input %p: parameter "p"
input %row: parameter "row"
graph(%p: f32[3, 3], %row: f32[3]) {
  %mul: f32[3, 3] = aten.mul.Tensor(%p, %row)
  %sum: f32[] = aten.sum.default(%mul)
  return %sum
}

// == sgd
// error: the parameter p shares part of its memory with row; let them be one parameter or two of their own, or leave it out of the update with --wrt
