// run: grad
// What is computed under no_grad is a constant; what is written there changes what is differentiated.
graph(%x: f64[4]) {
  %mul: f64[4] = aten.mul.Tensor(%x, %x)
  %mean: f64[] = aten.mean.default(%mul) !no_grad
  %slice: f64[2] = aten.slice.Tensor(%mul, 0, 0, 2) !no_grad
  %mul_: f64[2] = aten.mul_.Tensor(%slice, 5) !no_grad
  %mul_1: f64[4] = aten.mul.Tensor(%mul, %mean)
  %sum: f64[] = aten.sum.default(%mul_1)
  return %sum
}

// == grad
// stage: functional
// output 0: loss
// output 1: gradient of %x
//
// graph(%x: f64[4]) {
//   %mul: f64[4] = aten.mul.Tensor(%x, %x)
//   %mean: f64[] = aten.mean.default(%mul) !no_grad
//   %slice: f64[2] = aten.slice.Tensor(%mul, 0, 0, 2) !no_grad
//   %mul_1: f64[2] = aten.mul.Tensor(%slice, 5) !no_grad
//   %mul_: f64[4] = aten.slice_scatter.default(%mul, %mul_1, 0, 0, 2) !no_grad
//   %mul_1_1: f64[4] = aten.mul.Tensor(%mul_, %mean)
//   %sum: f64[] = aten.sum.default(%mul_1_1)
//   %grad: f64[] = aten.full.default([], 1, dtype=f64)
//   %grad_1: f64[1] = aten.reshape.default(%grad, [1])
//   %grad_2: f64[4][0] = aten.expand.default(%grad_1, [4])
//   %grad_3: f64[4] = aten.mul.Tensor(%grad_2, %mean)
//   %grad_4: f64[2] = aten.full.default([2], 0, dtype=f64)
//   %grad_5: f64[4] = aten.slice_scatter.default(%grad_3, %grad_4, 0, 0, 2)
//   %grad_6: f64[2] = aten.slice.Tensor(%grad_3, 0, 0, 2)
//   %grad_7: f64[] = aten.full.default([], 5, dtype=f64)
//   %grad_8: f64[2] = aten.mul.Tensor(%grad_6, %grad_7)
//   %grad_9: f64[4] = aten.full.default([4], 0, dtype=f64)
//   %grad_10: f64[4] = aten.slice_scatter.default(%grad_9, %grad_8, 0, 0, 2)
//   %grad_11: f64[4] = aten.add.Tensor(%grad_5, %grad_10)
//   %grad_12: f64[4] = aten.mul.Tensor(%grad_11, %x)
//   %grad_13: f64[4] = aten.mul.Tensor(%grad_11, %x)
//   %grad_14: f64[4] = aten.add.Tensor(%grad_12, %grad_13)
//   return %sum, %grad_14
// }
