// A list that is shorter than the parameters' is refused.
// run: functionalize
graph(%p: f32[4], %q: f32[4], %g: f32[4], %h: f32[4], %m: f32[4]) {
  aten._fused_sgd_.default([%p, %q], [%g, %h], [%m], weight_decay=0.5, momentum=0.5, lr=0.25, dampening=0.0, nesterov=False, maximize=False, is_first_step=False)
  return
}

// == functionalize
// error: the lists of aten._fused_sgd_.default are of different lengths (at aten._fused_sgd_.default)
