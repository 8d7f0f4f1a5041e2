// Matrices of complex numbers: a solution and a pseudo-inverse, and what they give for the loss.
// run: grad
graph(%a: c128[2, 2], %b: c128[2, 1], %m: f64[3, 2]) {
  %x: c128[2, 1][1, 2], %lu: c128[2, 2][1, 2], %pivots: i32[2], %info: i32[] = aten._linalg_solve_ex.default(%a, %b)
  %r: f64[2, 1, 2][2, 4, 1] = aten.view_as_real.default(%x)
  %s: f64[] = aten.sum.default(%r)
  %p: f64[2, 3] = aten.linalg_pinv.atol_rtol_tensor(%m)
  %t: f64[] = aten.sum.default(%p)
  %l: f64[] = aten.add.Tensor(%s, %t)
  return %l
}

// == grad
// stage: functional
// output 0: loss
// output 1: gradient of %a
// output 2: gradient of %b
// output 3: gradient of %m
//
// graph(%a: c128[2, 2], %b: c128[2, 1], %m: f64[3, 2]) {
//   %x: c128[2, 1][1, 2], %lu: c128[2, 2][1, 2], %pivots: i32[2], %info: i32[] = aten._linalg_solve_ex.default(%a, %b)
//   %r: f64[2, 1, 2][2, 4, 1] = aten.view_as_real.default(%x)
//   %s: f64[] = aten.sum.default(%r)
//   %p: f64[2, 3] = aten.linalg_pinv.atol_rtol_tensor(%m)
//   %t: f64[] = aten.sum.default(%p)
//   %l: f64[] = aten.add.Tensor(%s, %t)
//   %grad: f64[] = aten.full.default([], 1, dtype=f64)
//   %grad_1: f64[1, 1] = aten.reshape.default(%grad, [1, 1])
//   %grad_2: f64[2, 3][0, 0] = aten.expand.default(%grad_1, [2, 3])
//   %grad_3: f64[3, 2][0, 0] = aten.transpose.int(%grad_2, -2, -1)
//   %grad_4: f64[3, 2][1, 3] = aten.transpose.int(%p, -2, -1)
//   %grad_5: f64[2, 2] = aten.matmul.default(%p, %grad_3)
//   %grad_6: f64[3, 2] = aten.matmul.default(%grad_4, %grad_5)
//   %grad_7: f64[2, 3] = aten.matmul.default(%grad_5, %p)
//   %grad_8: f64[3, 2][1, 3] = aten.transpose.int(%grad_7, -2, -1)
//   %grad_9: f64[3, 2][1, 3] = aten.neg.default(%grad_8)
//   %grad_10: f64[3, 2] = aten.matmul.default(%m, %grad_5)
//   %grad_11: f64[3, 2] = aten.sub.Tensor(%grad_3, %grad_10)
//   %grad_12: f64[3, 3] = aten.matmul.default(%grad_11, %p)
//   %grad_13: f64[3, 2] = aten.matmul.default(%grad_12, %grad_4)
//   %grad_14: f64[3, 2][1, 3] = aten.add.Tensor(%grad_9, %grad_13)
//   %grad_15: f64[3, 2][1, 3] = aten.add.Tensor(%grad_14, %grad_6)
//   %grad_16: f64[3, 3] = aten.matmul.default(%grad_6, %p)
//   %grad_17: f64[3, 2] = aten.matmul.default(%grad_16, %m)
//   %grad_18: f64[3, 2][1, 3] = aten.sub.Tensor(%grad_15, %grad_17)
//   %grad_19: f64[1, 1, 1] = aten.reshape.default(%grad, [1, 1, 1])
//   %grad_20: f64[2, 1, 2][0, 1, 0] = aten.expand.default(%grad_19, [2, 1, 2])
//   %grad_21: f64[2, 1][0, 1] = aten.select.int(%grad_20, -1, 0)
//   %grad_22: f64[2, 1][0, 1] = aten.select.int(%grad_20, -1, 1)
//   %grad_23: c128[2, 1] = aten.complex.default(%grad_21, %grad_22)
//   %grad_24: c128[2, 2][1, 2] = aten.transpose.int(%a, -2, -1)
//   %grad_25: c128[2, 2][1, 2] = aten.conj_physical.default(%grad_24)
//   %grad_26: c128[2, 1][1, 2], %grad_27: c128[2, 2][1, 2], %grad_28: i32[2], %grad_29: i32[] = aten._linalg_solve_ex.default(%grad_25, %grad_23)
//   %grad_30: c128[1, 2] = aten.transpose.int(%x, -2, -1)
//   %grad_31: c128[1, 2] = aten.conj_physical.default(%grad_30)
//   %grad_32: c128[2, 2] = aten.matmul.default(%grad_26, %grad_31)
//   %grad_33: c128[2, 2] = aten.neg.default(%grad_32)
//   return %l, %grad_33, %grad_26, %grad_18
// }
