// A functional program may not write, in the body of a higher-order operator neither.
// run: verify
stage: functional
graph(%x: f32[2], %p: bool[]) {
  %y: f32[2] = higher_order.cond(%p, @yes, @no, [%x])
  return %y
}
graph @yes(%x: f32[2]) {
  %c: f32[2] = aten.mul.Tensor(%x, 2)
  %w: f32[2] = aten.add_.Tensor(%c, 5)
  return %w
}
graph @no(%x: f32[2]) {
  %c: f32[2] = aten.neg.default(%x)
  return %c
}

// == verify
// error: an operator writes memory in a functional program (at %w = aten.add_.Tensor)
