// `exp` saves its result, which is overwritten through a detached tensor.
// run: functionalize, grad
graph(%x: f64[4]) {
  %e: f64[4] = aten.exp.default(%x)
  %d: f64[4] = aten.detach.default(%e)
  %o: f64[4] = aten.fill_.Scalar(%d, 2)
  %l: f64[] = aten.sum.default(%e)
  return %l
}

// == functionalize
// stage: functional
//
// graph(%x: f64[4]) {
//   %e: f64[4] = aten.exp.default(%x) !overwritten(%e)
//   %d: f64[4] = aten.detach.default(%e)
//   %o: f64[4] = aten.fill.Scalar(%d, 2)
//   %l: f64[4] = restride.with_history.default(%o, %e)
//   %l_1: f64[] = aten.sum.default(%l)
//   return %l_1
// }

// == grad
// error: %e is saved for the gradient of aten.exp.default and modified by an inplace operation (at %e = aten.exp.default); PyTorch has no gradient here: under `no_grad` or through `detach()`, write a clone, or before the value is used
