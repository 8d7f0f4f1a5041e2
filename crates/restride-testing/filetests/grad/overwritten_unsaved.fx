// What is overwritten is not saved: `exp` keeps its result, `mul` by a constant not the other operand, and %z other cells.
// run: functionalize, grad
graph(%x: f64[4], %y: f64[2]) {
  %b: f64[4] = aten.mul.Tensor(%x, 2)
  %e: f64[4] = aten.exp.default(%b)
  %c: f64[4] = aten.detach.default(%e)
  %k: f64[4] = aten.clone.default(%c)
  %m: f64[4] = aten.mul.Tensor(%b, %k)
  %u: f64[2]+2 = aten.slice.Tensor(%b, 0, 2, 4)
  %z: f64[2] = aten.mul.Tensor(%u, %y)
  %v: f64[2] = aten.slice.Tensor(%b, 0, 0, 2) !no_grad
  %o: f64[2] = aten.zero_.default(%v) !no_grad
  %s: f64[4] = aten.add.Tensor(%e, %m)
  %s1: f64[4] = aten.add.Tensor(%s, %b)
  %l1: f64[] = aten.sum.default(%s1)
  %l2: f64[] = aten.sum.default(%z)
  %l: f64[] = aten.add.Tensor(%l1, %l2)
  return %l
}

// == functionalize
// stage: functional
//
// graph(%x: f64[4], %y: f64[2]) {
//   %b: f64[4] = aten.mul.Tensor(%x, 2)
//   %e: f64[4] = aten.exp.default(%b)
//   %c: f64[4] = aten.detach.default(%e)
//   %k: f64[4] = aten.clone.default(%c)
//   %m: f64[4] = aten.mul.Tensor(%b, %k) !overwritten(%b)
//   %u: f64[2]+2 = aten.slice.Tensor(%b, 0, 2, 4)
//   %z: f64[2] = aten.mul.Tensor(%u, %y)
//   %v: f64[2] = aten.slice.Tensor(%b, 0, 0, 2) !no_grad
//   %o: f64[2] = aten.zero.default(%v) !no_grad
//   %o_1: f64[4] = aten.slice_scatter.default(%b, %o, 0, 0, 2) !no_grad
//   %s: f64[4] = aten.add.Tensor(%e, %m)
//   %s1: f64[4] = restride.with_history.default(%o_1, %b)
//   %s1_1: f64[4] = aten.add.Tensor(%s, %s1)
//   %l1: f64[] = aten.sum.default(%s1_1)
//   %l2: f64[] = aten.sum.default(%z)
//   %l: f64[] = aten.add.Tensor(%l1, %l2)
//   return %l
// }

// == grad
// stage: functional
// output 0: loss
// output 1: gradient of %x
// output 2: gradient of %y
//
// graph(%x: f64[4], %y: f64[2]) {
//   %b: f64[4] = aten.mul.Tensor(%x, 2)
//   %e: f64[4] = aten.exp.default(%b)
//   %c: f64[4] = aten.detach.default(%e)
//   %k: f64[4] = aten.clone.default(%c)
//   %m: f64[4] = aten.mul.Tensor(%b, %k) !overwritten(%b)
//   %u: f64[2]+2 = aten.slice.Tensor(%b, 0, 2, 4)
//   %z: f64[2] = aten.mul.Tensor(%u, %y)
//   %v: f64[2] = aten.slice.Tensor(%b, 0, 0, 2) !no_grad
//   %o: f64[2] = aten.zero.default(%v) !no_grad
//   %o_1: f64[4] = aten.slice_scatter.default(%b, %o, 0, 0, 2) !no_grad
//   %s: f64[4] = aten.add.Tensor(%e, %m)
//   %s1_1: f64[4] = aten.add.Tensor(%s, %o_1)
//   %l1: f64[] = aten.sum.default(%s1_1)
//   %l2: f64[] = aten.sum.default(%z)
//   %l: f64[] = aten.add.Tensor(%l1, %l2)
//   %grad: f64[] = aten.full.default([], 1, dtype=f64)
//   %grad_1: f64[1] = aten.reshape.default(%grad, [1])
//   %grad_2: f64[2][0] = aten.expand.default(%grad_1, [2])
//   %grad_3: f64[1] = aten.reshape.default(%grad, [1])
//   %grad_4: f64[4][0] = aten.expand.default(%grad_3, [4])
//   %grad_5: f64[2] = aten.mul.Tensor(%grad_2, %y)
//   %grad_6: f64[2] = aten.mul.Tensor(%grad_2, %u)
//   %grad_7: f64[4] = aten.full.default([4], 0, dtype=f64)
//   %grad_8: f64[4] = aten.slice_scatter.default(%grad_7, %grad_5, 0, 2, 4)
//   %grad_9: f64[4] = aten.add.Tensor(%grad_4, %grad_8)
//   %grad_10: f64[4] = aten.mul.Tensor(%grad_4, %k)
//   %grad_11: f64[4] = aten.add.Tensor(%grad_9, %grad_10)
//   %grad_12: f64[4] = aten.mul.Tensor(%grad_4, %e)
//   %grad_13: f64[4] = aten.add.Tensor(%grad_11, %grad_12)
//   %grad_14: f64[] = aten.full.default([], 2, dtype=f64)
//   %grad_15: f64[4] = aten.mul.Tensor(%grad_13, %grad_14)
//   return %l, %grad_15, %grad_6
// }
