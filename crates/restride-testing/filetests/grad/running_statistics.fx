// Running statistics that one normalisation of a batch leaves are constants to the next one, as in PyTorch.
// run: grad
input %m: buffer "m"
input %v: buffer "v"

graph(%m: f32[3], %v: f32[3], %x: f32[4, 3], %y: f32[4, 3]) {
  %a: f32[4, 3] = aten.batch_norm.default(%x, None, None, %m, %v, True, 0.1, 1e-05, False)
  %b: f32[4, 3] = aten.batch_norm.default(%y, None, None, %m, %v, True, 0.1, 1e-05, False)
  %c: f32[4, 3] = aten.batch_norm.default(%x, None, None, %m, %v, False, 0.1, 1e-05, False)
  %p: f32[4, 3] = aten.mul.Tensor(%a, %b)
  %q: f32[4, 3] = aten.mul.Tensor(%p, %c)
  %l: f32[] = aten.sum.default(%q)
  return %l
}

// == grad
// stage: functional
// input %m: buffer "m"
// input %v: buffer "v"
// output 0: mutation of %m
// output 1: mutation of %v
// output 2: loss
// output 3: gradient of %x
// output 4: gradient of %y
//
// graph(%m: f32[3], %v: f32[3], %x: f32[4, 3], %y: f32[4, 3]) {
//   %a: f32[4, 3], %a_1: f32[3], %a_2: f32[3], %a_3: f32[3], %a_4: f32[3] = aten._native_batch_norm_legit_functional.default(%x, None, None, %m, %v, True, 0.1, 1e-5)
//   %b: f32[4, 3], %b_1: f32[3], %b_2: f32[3], %b_3: f32[3], %b_4: f32[3] = aten._native_batch_norm_legit_functional.default(%y, None, None, %a_3, %a_4, True, 0.1, 1e-5)
//   %c: f32[4, 3], %c_1: f32[0], %c_2: f32[0] = aten._native_batch_norm_legit_no_training.default(%x, None, None, %b_3, %b_4, 0.1, 1e-5)
//   %p: f32[4, 3] = aten.mul.Tensor(%a, %b)
//   %q: f32[4, 3] = aten.mul.Tensor(%p, %c)
//   %l: f32[] = aten.sum.default(%q)
//   %grad: f32[] = aten.full.default([], 1, dtype=f32)
//   %grad_1: f32[1, 1] = aten.reshape.default(%grad, [1, 1])
//   %grad_2: f32[4, 3][0, 0] = aten.expand.default(%grad_1, [4, 3])
//   %grad_3: f32[4, 3] = aten.mul.Tensor(%grad_2, %c)
//   %grad_4: f32[4, 3] = aten.mul.Tensor(%grad_2, %p)
//   %grad_5: f32[4, 3] = aten.mul.Tensor(%grad_3, %b)
//   %grad_6: f32[4, 3] = aten.mul.Tensor(%grad_3, %a)
//   %grad_7: f32[4, 3], %grad_8: f32[0], %grad_9: f32[0] = aten.native_batch_norm_backward.default(%grad_4, %x, None, %b_3, %b_4, None, None, False, 1e-5, [True, False, False])
//   %grad_10: f32[4, 3], %grad_11: f32[0], %grad_12: f32[0] = aten.native_batch_norm_backward.default(%grad_6, %y, None, %a_3, %a_4, %b_1, %b_2, True, 1e-5, [True, False, False])
//   %grad_13: f32[4, 3], %grad_14: f32[0], %grad_15: f32[0] = aten.native_batch_norm_backward.default(%grad_5, %x, None, %m, %v, %a_1, %a_2, True, 1e-5, [True, False, False])
//   %grad_16: f32[4, 3] = aten.add.Tensor(%grad_7, %grad_13)
//   return %b_3, %b_4, %l, %grad_16, %grad_10
// }
