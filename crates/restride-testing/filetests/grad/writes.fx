// run: grad
// A write through a view: the gradient of the row goes through the product, that of the rest straight on.
graph(%x: f64[3, 3], %y: f64[3]) {
  %clone: f64[3, 3] = aten.clone.default(%x)
  %select: f64[3]+3 = aten.select.int(%clone, 0, 1)
  %mul_: f64[3]+3 = aten.mul_.Tensor(%select, %y)
  %sum: f64[] = aten.sum.default(%clone)
  return %sum
}

// == grad
// stage: functional
// output 0: loss
// output 1: gradient of %x
// output 2: gradient of %y
//
// graph(%x: f64[3, 3], %y: f64[3]) {
//   %clone: f64[3, 3] = aten.clone.default(%x)
//   %select: f64[3]+3 = aten.select.int(%clone, 0, 1)
//   %mul: f64[3]+3 = aten.mul.Tensor(%select, %y)
//   %mul_: f64[3, 3] = aten.select_scatter.default(%clone, %mul, 0, 1)
//   %sum: f64[] = aten.sum.default(%mul_)
//   %grad: f64[] = aten.full.default([], 1, dtype=f64)
//   %grad_1: f64[1, 1] = aten.reshape.default(%grad, [1, 1])
//   %grad_2: f64[3, 3][0, 0] = aten.expand.default(%grad_1, [3, 3])
//   %grad_3: f64[3] = aten.full.default([3], 0, dtype=f64)
//   %grad_4: f64[3, 3] = aten.select_scatter.default(%grad_2, %grad_3, 0, 1)
//   %grad_5: f64[3][0] = aten.select.int(%grad_2, 0, 1)
//   %grad_6: f64[3] = aten.mul.Tensor(%grad_5, %y)
//   %grad_7: f64[3] = aten.mul.Tensor(%grad_5, %select)
//   %grad_8: f64[3, 3] = aten.full.default([3, 3], 0, dtype=f64)
//   %grad_9: f64[3, 3] = aten.select_scatter.default(%grad_8, %grad_6, 0, 1)
//   %grad_10: f64[3, 3] = aten.add.Tensor(%grad_4, %grad_9)
//   return %sum, %grad_10, %grad_7
// }
