// Complex numbers among arguments: the gradient takes their conjugates.
// run: grad, run
graph(%a: c64[2], %b: c64[2]) {
  %s: c64[2] = aten.add.Tensor(%a, %b, alpha=(0.0+2.0j))
  %p: c64[2] = aten.pow.Tensor_Scalar(%s, (1.0+2.0j))
  %t: c64[2] = aten.tanh.default(%p)
  %m: f32[2] = aten.abs.default(%t)
  %l: f32[] = aten.sum.default(%m)
  return %l
}

// == grad
// stage: functional
// output 0: loss
// output 1: gradient of %a
// output 2: gradient of %b
//
// graph(%a: c64[2], %b: c64[2]) {
//   %s: c64[2] = aten.add.Tensor(%a, %b, alpha=(0.0+2.0j))
//   %p: c64[2] = aten.pow.Tensor_Scalar(%s, (1.0+2.0j))
//   %t: c64[2] = aten.tanh.default(%p)
//   %m: f32[2] = aten.abs.default(%t)
//   %l: f32[] = aten.sum.default(%m)
//   %grad: f32[] = aten.full.default([], 1, dtype=f32)
//   %grad_1: f32[1] = aten.reshape.default(%grad, [1])
//   %grad_2: f32[2][0] = aten.expand.default(%grad_1, [2])
//   %grad_3: c64[2] = aten.sgn.default(%t)
//   %grad_4: c64[2] = aten.mul.Tensor(%grad_2, %grad_3)
//   %grad_5: c64[2] = aten.tanh_backward.default(%grad_4, %t)
//   %grad_6: c64[2] = aten.pow.Tensor_Scalar(%s, (0.0+2.0j))
//   %grad_7: c64[2] = aten.mul.Scalar(%grad_6, (1.0+2.0j))
//   %grad_8: c64[2] = aten.conj_physical.default(%grad_7)
//   %grad_9: c64[2] = aten.mul.Tensor(%grad_5, %grad_8)
//   %grad_10: c64[2] = aten.mul.Scalar(%grad_9, (0.0-2.0j))
//   return %l, %grad_9, %grad_10
// }

// == run
// input 0: c64[2][1]+0 = [(0.0+0.0j) (1.0+0.0j)]
// input 1: c64[2][1]+0 = [(0.0+0.0j) (1.0+0.0j)]
// output 0: f32[][]+0 = [0.24105402827262878]
