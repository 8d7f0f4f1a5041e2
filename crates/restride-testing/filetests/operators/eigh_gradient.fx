// Vectors that stay orthonormal turn only: the symmetric part of their gradient does not count.
// run: grad, run
graph(%x: f64[2, 2]) {
  %t: f64[2, 2][1, 2] = aten.t.default(%x)
  %a: f64[2, 2] = aten.add.Tensor(%x, %t)
  %l: f64[2], %v: f64[2, 2][1, 2] = aten._linalg_eigh.default(%a, "L", True)
  %q: f64[2, 2][1, 2] = aten.mul.Tensor(%v, %v)
  %w: f64[2, 2][1, 2] = aten.mul.Tensor(%q, %x)
  %loss: f64[] = aten.sum.default(%w)
  return %loss
}

// == grad
// stage: functional
// output 0: loss
// output 1: gradient of %x
//
// graph(%x: f64[2, 2]) {
//   %t: f64[2, 2][1, 2] = aten.t.default(%x)
//   %a: f64[2, 2] = aten.add.Tensor(%x, %t)
//   %l: f64[2], %v: f64[2, 2][1, 2] = aten._linalg_eigh.default(%a)
//   %q: f64[2, 2][1, 2] = aten.mul.Tensor(%v, %v)
//   %w: f64[2, 2][1, 2] = aten.mul.Tensor(%q, %x)
//   %loss: f64[] = aten.sum.default(%w)
//   %grad: f64[] = aten.full.default([], 1, dtype=f64)
//   %grad_1: f64[1, 1] = aten.reshape.default(%grad, [1, 1])
//   %grad_2: f64[2, 2][0, 0] = aten.expand.default(%grad_1, [2, 2])
//   %grad_3: f64[2, 2] = aten.mul.Tensor(%grad_2, %x)
//   %grad_4: f64[2, 2][1, 2] = aten.mul.Tensor(%grad_2, %q)
//   %grad_5: f64[2, 2] = aten.mul.Tensor(%grad_3, %v)
//   %grad_6: f64[2, 2] = aten.mul.Tensor(%grad_3, %v)
//   %grad_7: f64[2, 2] = aten.add.Tensor(%grad_5, %grad_6)
//   %grad_8: f64[2, 2] = aten.transpose.int(%v, -2, -1)
//   %grad_9: f64[1, 2] = aten.unsqueeze.default(%l, -2)
//   %grad_10: f64[2, 1] = aten.unsqueeze.default(%l, -1)
//   %grad_11: f64[2, 2] = aten.sub.Tensor(%grad_9, %grad_10)
//   %grad_12: bool[2, 2] = aten.eq.Scalar(%grad_11, 0)
//   %grad_13: f64[2, 2] = aten.masked_fill.Scalar(%grad_11, %grad_12, inf)
//   %grad_14: f64[2, 2] = aten.matmul.default(%grad_8, %grad_7)
//   %grad_15: f64[2, 2][1, 2] = aten.transpose.int(%grad_14, -2, -1)
//   %grad_16: f64[2, 2] = aten.sub.Tensor(%grad_14, %grad_15)
//   %grad_17: f64[2, 2] = aten.mul.Scalar(%grad_16, 0.5)
//   %grad_18: f64[2, 2] = aten.div.Tensor(%grad_17, %grad_13)
//   %grad_19: f64[2, 2] = aten.matmul.default(%v, %grad_18)
//   %grad_20: f64[2, 2] = aten.matmul.default(%grad_19, %grad_8)
//   %grad_21: f64[2, 2][1, 2] = aten.add.Tensor(%grad_4, %grad_20)
//   %grad_22: f64[2, 2][1, 2] = aten.permute.default(%grad_20, [1, 0])
//   %grad_23: f64[2, 2][1, 2] = aten.add.Tensor(%grad_21, %grad_22)
//   return %loss, %grad_23
// }

// == run
// input 0: f64[2, 2][2, 1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f64[][]+0 = [2.9999999999999996]
