// A branch writes what it was given under no_grad: the gradient goes on to the operand in that branch as in the other one.
// run: functionalize, grad
graph(%p: bool[], %x: f64[2], %y: f64[2]) {
  %b: f64[2] = aten.mul.Tensor(%x, 2)
  %r: f64[2] = higher_order.cond(%p, @yes, @no, [%b, %y])
  %m: f64[2] = aten.mul.Tensor(%r, %b)
  %l: f64[] = aten.sum.default(%m)
  return %l
}
graph @yes(%b: f64[2], %y: f64[2]) {
  %w: f64[2] = aten.mul_.Tensor(%b, %y) !no_grad
  %r: f64[2] = aten.mul.Tensor(%b, 3)
  return %r
}
graph @no(%b: f64[2], %y: f64[2]) {
  %r: f64[2] = aten.mul.Tensor(%b, %y)
  return %r
}

// == functionalize
// stage: functional
//
// graph(%p: bool[], %x: f64[2], %y: f64[2]) {
//   %b: f64[2] = aten.mul.Tensor(%x, 2)
//   %r: f64[2], %b_1: f64[2] = higher_order.cond(%p, @graph1, @graph2, [%y, %b])
//   %m: f64[2] = aten.mul.Tensor(%r, %b_1)
//   %l: f64[] = aten.sum.default(%m)
//   return %l
// }
//
// graph @graph1(%y: f64[2], %base_0: f64[2]) {
//   %w: f64[2] = aten.mul.Tensor(%base_0, %y) !no_grad
//   %r: f64[2] = restride.with_history.default(%w, %base_0)
//   %r_1: f64[2] = aten.mul.Tensor(%r, 3)
//   return %r_1, %r
// }
//
// graph @graph2(%y: f64[2], %base_0: f64[2]) {
//   %r: f64[2] = aten.mul.Tensor(%base_0, %y)
//   return %r, %base_0
// }

// == grad
// stage: functional
// output 0: loss
// output 1: gradient of %x
// output 2: gradient of %y
//
// graph(%p: bool[], %x: f64[2], %y: f64[2]) {
//   %b: f64[2] = aten.mul.Tensor(%x, 2)
//   %r: f64[2], %b_1: f64[2] = higher_order.cond(%p, @graph1, @graph2, [%y, %b])
//   %m: f64[2] = aten.mul.Tensor(%r, %b_1)
//   %l: f64[] = aten.sum.default(%m)
//   %grad: f64[] = aten.full.default([], 1, dtype=f64)
//   %grad_1: f64[1] = aten.reshape.default(%grad, [1])
//   %grad_2: f64[2][0] = aten.expand.default(%grad_1, [2])
//   %grad_3: f64[2] = aten.mul.Tensor(%grad_2, %b_1)
//   %grad_4: f64[2] = aten.mul.Tensor(%grad_2, %r)
//   %grad_5: f64[2], %grad_6: f64[2] = higher_order.cond(%p, @graph3, @graph4, [%y, %b, %grad_3, %grad_4])
//   %grad_7: f64[] = aten.full.default([], 2, dtype=f64)
//   %grad_8: f64[2] = aten.mul.Tensor(%grad_6, %grad_7)
//   return %l, %grad_8, %grad_5
// }
//
// graph @graph1(%y: f64[2], %base_0: f64[2]) {
//   %w: f64[2] = aten.mul.Tensor(%base_0, %y) !no_grad
//   %r_1: f64[2] = aten.mul.Tensor(%w, 3)
//   return %r_1, %w
// }
//
// graph @graph2(%y: f64[2], %base_0: f64[2]) {
//   %r: f64[2] = aten.mul.Tensor(%base_0, %y)
//   return %r, %base_0
// }
//
// graph @graph3(%y: f64[2], %base_0: f64[2], %grad_output_0: f64[2], %grad_output_1: f64[2]) {
//   %grad: f64[] = aten.full.default([], 3, dtype=f64)
//   %grad_1: f64[2] = aten.mul.Tensor(%grad_output_0, %grad)
//   %grad_2: f64[2] = aten.add.Tensor(%grad_output_1, %grad_1)
//   %grad_3: f64[2] = aten.full.default([2], 0, dtype=f64)
//   return %grad_3, %grad_2
// }
//
// graph @graph4(%y: f64[2], %base_0: f64[2], %grad_output_0: f64[2], %grad_output_1: f64[2]) {
//   %grad: f64[2] = aten.mul.Tensor(%grad_output_0, %y)
//   %grad_1: f64[2] = aten.mul.Tensor(%grad_output_0, %base_0)
//   %grad_2: f64[2] = aten.add.Tensor(%grad_output_1, %grad)
//   return %grad_1, %grad_2
// }
