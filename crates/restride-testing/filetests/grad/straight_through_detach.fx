// The same through a detached tensor, from a value that is differentiated: its gradient goes through the detached one alone.
// run: functionalize, grad
graph(%w: f64[2, 3], %x: f64[3]) {
  %q: f64[2, 3] = aten.mul.Tensor(%w, 1)
  %d: f64[2, 3] = aten.detach.default(%q)
  %s: f64[3] = aten.select.int(%d, 0, 0)
  %c: f64[3] = aten.copy_.default(%s, %x)
  %p: f64[2, 3] = aten.mul.Tensor(%q, 3)
  %e: f64[2, 3] = aten.mul.Tensor(%d, 5)
  %f: f64[2, 3] = aten.add.Tensor(%p, %e)
  %l: f64[] = aten.sum.default(%f)
  return %l
}

// == functionalize
// stage: functional
//
// graph(%w: f64[2, 3], %x: f64[3]) {
//   %q: f64[2, 3] = aten.mul.Tensor(%w, 1)
//   %c: f64[2, 3] = aten.detach.default(%q)
//   %c_1: f64[2, 3] = aten.select_scatter.default(%c, %x, 0, 0)
//   %p: f64[2, 3] = restride.with_history.default(%c_1, %q)
//   %p_1: f64[2, 3] = aten.mul.Tensor(%p, 3)
//   %e: f64[2, 3] = aten.mul.Tensor(%c_1, 5)
//   %f: f64[2, 3] = aten.add.Tensor(%p_1, %e)
//   %l: f64[] = aten.sum.default(%f)
//   return %l
// }

// == grad
// stage: functional
// output 0: loss
// output 1: gradient of %w
// output 2: gradient of %x
//
// graph(%w: f64[2, 3], %x: f64[3]) {
//   %q: f64[2, 3] = aten.mul.Tensor(%w, 1)
//   %c: f64[2, 3] = aten.detach.default(%q)
//   %c_1: f64[2, 3] = aten.select_scatter.default(%c, %x, 0, 0)
//   %p_1: f64[2, 3] = aten.mul.Tensor(%c_1, 3)
//   %e: f64[2, 3] = aten.mul.Tensor(%c_1, 5)
//   %f: f64[2, 3] = aten.add.Tensor(%p_1, %e)
//   %l: f64[] = aten.sum.default(%f)
//   %grad: f64[] = aten.full.default([], 1, dtype=f64)
//   %grad_1: f64[1, 1] = aten.reshape.default(%grad, [1, 1])
//   %grad_2: f64[2, 3][0, 0] = aten.expand.default(%grad_1, [2, 3])
//   %grad_3: f64[] = aten.full.default([], 5, dtype=f64)
//   %grad_4: f64[2, 3] = aten.mul.Tensor(%grad_2, %grad_3)
//   %grad_5: f64[] = aten.full.default([], 3, dtype=f64)
//   %grad_6: f64[2, 3] = aten.mul.Tensor(%grad_2, %grad_5)
//   %grad_7: f64[3] = aten.select.int(%grad_4, 0, 0)
//   %grad_8: f64[] = aten.full.default([], 1, dtype=f64)
//   %grad_9: f64[2, 3] = aten.mul.Tensor(%grad_6, %grad_8)
//   return %l, %grad_9, %grad_7
// }
