// The straight-through estimator: the gradient of %w is %x, and %q is what was written.
// run: functionalize, grad, run
graph(%w: f64[4], %x: f64[4]) {
  %q: f64[4] = aten.mul.Tensor(%w, 1)
  %r: f64[4] = aten.round.default(%w) !no_grad
  %c: f64[4] = aten.copy_.default(%q, %r) !no_grad
  %p: f64[4] = aten.mul.Tensor(%x, %q)
  %l: f64[] = aten.sum.default(%p)
  return %l
}

// == functionalize
// stage: functional
//
// graph(%w: f64[4], %x: f64[4]) {
//   %q: f64[4] = aten.mul.Tensor(%w, 1)
//   %r: f64[4] = aten.round.default(%w) !no_grad
//   %p: f64[4] = restride.with_history.default(%r, %q)
//   %p_1: f64[4] = aten.mul.Tensor(%x, %p)
//   %l: f64[] = aten.sum.default(%p_1)
//   return %l
// }

// == grad
// stage: functional
// output 0: loss
// output 1: gradient of %w
// output 2: gradient of %x
//
// graph(%w: f64[4], %x: f64[4]) {
//   %r: f64[4] = aten.round.default(%w) !no_grad
//   %p_1: f64[4] = aten.mul.Tensor(%x, %r)
//   %l: f64[] = aten.sum.default(%p_1)
//   %grad: f64[] = aten.full.default([], 1, dtype=f64)
//   %grad_1: f64[1] = aten.reshape.default(%grad, [1])
//   %grad_2: f64[4][0] = aten.expand.default(%grad_1, [4])
//   %grad_3: f64[4] = aten.mul.Tensor(%grad_2, %r)
//   %grad_4: f64[4] = aten.mul.Tensor(%grad_2, %x)
//   %grad_5: f64[] = aten.full.default([], 1, dtype=f64)
//   %grad_6: f64[4] = aten.mul.Tensor(%grad_4, %grad_5)
//   return %l, %grad_6, %grad_3
// }

// == run
// input 0: f64[4][1]+0 = [0.0 1.0 2.0 3.0]
// input 1: f64[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f64[][]+0 = [14.0]
