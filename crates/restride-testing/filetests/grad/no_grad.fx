// run: grad
// A write under no_grad to a part changes values and not the gradient: as without the write, with the new values.
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
//   %mul_1_2: f64[4] = aten.mul.Tensor(%mul_, %mean)
//   %sum: f64[] = aten.sum.default(%mul_1_2)
//   %grad: f64[] = aten.full.default([], 1, dtype=f64)
//   %grad_1: f64[1] = aten.reshape.default(%grad, [1])
//   %grad_2: f64[4][0] = aten.expand.default(%grad_1, [4])
//   %grad_3: f64[4] = aten.mul.Tensor(%grad_2, %mean)
//   %grad_4: f64[4] = aten.mul.Tensor(%grad_3, %x)
//   %grad_5: f64[4] = aten.mul.Tensor(%grad_3, %x)
//   %grad_6: f64[4] = aten.add.Tensor(%grad_4, %grad_5)
//   return %sum, %grad_6
// }
