// Lists that are written under no_grad and through detached tensors, member by member.
// run: functionalize, grad
graph(%x: f64[2], %y: f64[2]) {
  %a: f64[2] = aten.mul.Tensor(%x, 2)
  %b: f64[2] = aten.mul.Tensor(%x, 3)
  %d: f64[2] = aten.detach.default(%b)
  aten._foreach_mul_.List([%a], [%y]) !no_grad
  aten._foreach_mul_.List([%d], [%y])
  %p: f64[2] = aten.mul.Tensor(%a, %b)
  %q: f64[2] = aten.add.Tensor(%p, %d)
  %l: f64[] = aten.sum.default(%q)
  return %l
}

// == functionalize
// stage: functional
//
// graph(%x: f64[2], %y: f64[2]) {
//   %a: f64[2] = aten.mul.Tensor(%x, 2)
//   %b: f64[2] = aten.mul.Tensor(%x, 3)
//   %mul: f64[2] = aten.mul.Tensor(%a, %y) !no_grad
//   %d: f64[2] = aten.detach.default(%b)
//   %mul_1: f64[2] = aten.mul.Tensor(%d, %y)
//   %p: f64[2] = restride.with_history.default(%mul, %a)
//   %p_1: f64[2] = restride.with_history.default(%mul_1, %b)
//   %p_2: f64[2] = aten.mul.Tensor(%p, %p_1)
//   %q: f64[2] = aten.add.Tensor(%p_2, %mul_1)
//   %l: f64[] = aten.sum.default(%q)
//   return %l
// }

// == grad
// stage: functional
// output 0: loss
// output 1: gradient of %x
// output 2: gradient of %y
//
// graph(%x: f64[2], %y: f64[2]) {
//   %a: f64[2] = aten.mul.Tensor(%x, 2)
//   %b: f64[2] = aten.mul.Tensor(%x, 3)
//   %mul: f64[2] = aten.mul.Tensor(%a, %y) !no_grad
//   %d: f64[2] = aten.detach.default(%b)
//   %mul_1: f64[2] = aten.mul.Tensor(%d, %y)
//   %p_2: f64[2] = aten.mul.Tensor(%mul, %mul_1)
//   %q: f64[2] = aten.add.Tensor(%p_2, %mul_1)
//   %l: f64[] = aten.sum.default(%q)
//   %grad: f64[] = aten.full.default([], 1, dtype=f64)
//   %grad_1: f64[1] = aten.reshape.default(%grad, [1])
//   %grad_2: f64[2][0] = aten.expand.default(%grad_1, [2])
//   %grad_3: f64[2] = aten.mul.Tensor(%grad_2, %mul_1)
//   %grad_4: f64[2] = aten.mul.Tensor(%grad_2, %mul)
//   %grad_5: f64[2] = aten.mul.Tensor(%grad_2, %d)
//   %grad_6: f64[] = aten.full.default([], 3, dtype=f64)
//   %grad_7: f64[2] = aten.mul.Tensor(%grad_4, %grad_6)
//   %grad_8: f64[] = aten.full.default([], 2, dtype=f64)
//   %grad_9: f64[2] = aten.mul.Tensor(%grad_3, %grad_8)
//   %grad_10: f64[2] = aten.add.Tensor(%grad_7, %grad_9)
//   return %l, %grad_10, %grad_5
// }
