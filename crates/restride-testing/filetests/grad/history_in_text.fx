// A functional program reads back with its histories: the gradient of %x goes by way of %b, past what was written.
// run: grad
stage: functional
graph(%x: f64[2], %y: f64[2]) {
  %b: f64[2] = aten.mul.Tensor(%x, 2)
  %w: f64[2] = aten.mul.Tensor(%b, %y) !no_grad
  %h: f64[2] = restride.with_history.default(%w, %b)
  %m: f64[2] = aten.mul.Tensor(%h, %y)
  %l: f64[] = aten.sum.default(%m)
  return %l
}

// == grad
// stage: functional
// output 0: loss
// output 1: gradient of %x
// output 2: gradient of %y
//
// graph(%x: f64[2], %y: f64[2]) {
//   %b: f64[2] = aten.mul.Tensor(%x, 2)
//   %w: f64[2] = aten.mul.Tensor(%b, %y) !no_grad
//   %m: f64[2] = aten.mul.Tensor(%w, %y)
//   %l: f64[] = aten.sum.default(%m)
//   %grad: f64[] = aten.full.default([], 1, dtype=f64)
//   %grad_1: f64[1] = aten.reshape.default(%grad, [1])
//   %grad_2: f64[2][0] = aten.expand.default(%grad_1, [2])
//   %grad_3: f64[2] = aten.mul.Tensor(%grad_2, %y)
//   %grad_4: f64[2] = aten.mul.Tensor(%grad_2, %w)
//   %grad_5: f64[] = aten.full.default([], 2, dtype=f64)
//   %grad_6: f64[2] = aten.mul.Tensor(%grad_3, %grad_5)
//   return %l, %grad_6, %grad_4
// }
