// What `mul` saves is overwritten under no_grad: PyTorch has no gradient, and it is refused at the call.
// run: functionalize, grad, run
graph(%x: f64[4], %y: f64[4]) {
  %b: f64[4] = aten.mul.Tensor(%x, 2)
  %z: f64[4] = aten.mul.Tensor(%b, %y)
  %v: f64[2] = aten.slice.Tensor(%b, 0, 0, 2) !no_grad
  %o: f64[2] = aten.zero_.default(%v) !no_grad
  %s: f64[4] = aten.add.Tensor(%z, %b)
  %l: f64[] = aten.sum.default(%s)
  return %l
}

// == functionalize
// stage: functional
//
// graph(%x: f64[4], %y: f64[4]) {
//   %b: f64[4] = aten.mul.Tensor(%x, 2)
//   %z: f64[4] = aten.mul.Tensor(%b, %y) !overwritten(%b)
//   %v: f64[2] = aten.slice.Tensor(%b, 0, 0, 2) !no_grad
//   %o: f64[2] = aten.zero.default(%v) !no_grad
//   %o_1: f64[4] = aten.slice_scatter.default(%b, %o, 0, 0, 2) !no_grad
//   %s: f64[4] = restride.with_history.default(%o_1, %b)
//   %s_1: f64[4] = aten.add.Tensor(%z, %s)
//   %l: f64[] = aten.sum.default(%s_1)
//   return %l
// }

// == grad
// error: %b is saved for the gradient of aten.mul.Tensor and modified by an inplace operation (at %z = aten.mul.Tensor); PyTorch has no gradient here: under `no_grad` or through `detach()`, write a clone, or before the value is used

// == run
// input 0: f64[4][1]+0 = [0.0 1.0 2.0 3.0]
// input 1: f64[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f64[][]+0 = [38.0]
