// The gradient of a condition is a condition.
// run: grad
graph(%p: bool[], %x: f64[4], %y: f64[4]) {
  %a: f64[4] = aten.mul.Tensor(%x, 2)
  %r: f64[4], %t: f64[4] = higher_order.cond(%p, @yes, @no, [%a, %y, %x])
  %m: f64[4] = aten.mul.Tensor(%r, %t)
  %sum: f64[] = aten.sum.default(%m)
  return %sum
}
graph @yes(%x: f64[4], %y: f64[4], %z: f64[4]) {
  %b: f64[4] = aten.mul.Tensor(%x, %y)
  %d: f64[4] = aten.flip.default(%b, [0])
  %e: f64[4] = aten.clone.default(%x)
  return %d, %e
}
graph @no(%x: f64[4], %y: f64[4], %z: f64[4]) {
  %s: f64[4] = aten.sin.default(%x)
  %e: f64[4] = aten.mul.Tensor(%s, %z)
  %f: f64[4] = aten.exp.default(%z)
  return %e, %f
}

// == grad
// stage: functional
// output 0: loss
// output 1: gradient of %x
// output 2: gradient of %y
//
// graph(%p: bool[], %x: f64[4], %y: f64[4]) {
//   %a: f64[4] = aten.mul.Tensor(%x, 2)
//   %r: f64[4], %t: f64[4] = higher_order.cond(%p, @yes, @no, [%a, %y, %x])
//   %m: f64[4] = aten.mul.Tensor(%r, %t)
//   %sum: f64[] = aten.sum.default(%m)
//   %grad: f64[] = aten.full.default([], 1, dtype=f64)
//   %grad_1: f64[1] = aten.reshape.default(%grad, [1])
//   %grad_2: f64[4][0] = aten.expand.default(%grad_1, [4])
//   %grad_3: f64[4] = aten.mul.Tensor(%grad_2, %t)
//   %grad_4: f64[4] = aten.mul.Tensor(%grad_2, %r)
//   %grad_5: f64[4], %grad_6: f64[4], %grad_7: f64[4] = higher_order.cond(%p, @graph3, @graph4, [%a, %y, %x, %grad_3, %grad_4])
//   %grad_8: f64[] = aten.full.default([], 2, dtype=f64)
//   %grad_9: f64[4] = aten.mul.Tensor(%grad_5, %grad_8)
//   %grad_10: f64[4] = aten.add.Tensor(%grad_7, %grad_9)
//   return %sum, %grad_10, %grad_6
// }
//
// graph @yes(%x: f64[4], %y: f64[4], %z: f64[4]) {
//   %b: f64[4] = aten.mul.Tensor(%x, %y)
//   %d: f64[4] = aten.flip.default(%b, [0])
//   %e: f64[4] = aten.clone.default(%x)
//   return %d, %e
// }
//
// graph @no(%x: f64[4], %y: f64[4], %z: f64[4]) {
//   %s: f64[4] = aten.sin.default(%x)
//   %e: f64[4] = aten.mul.Tensor(%s, %z)
//   %f: f64[4] = aten.exp.default(%z)
//   return %e, %f
// }
//
// graph @graph3(%x: f64[4], %y: f64[4], %z: f64[4], %grad_output_0: f64[4], %grad_output_1: f64[4]) {
//   %grad: f64[4] = aten.flip.default(%grad_output_0, [0])
//   %grad_1: f64[4] = aten.mul.Tensor(%grad, %y)
//   %grad_2: f64[4] = aten.mul.Tensor(%grad, %x)
//   %grad_3: f64[4] = aten.add.Tensor(%grad_output_1, %grad_1)
//   %grad_4: f64[4] = aten.full.default([4], 0, dtype=f64)
//   return %grad_3, %grad_2, %grad_4
// }
//
// graph @graph4(%x: f64[4], %y: f64[4], %z: f64[4], %grad_output_0: f64[4], %grad_output_1: f64[4]) {
//   %s: f64[4] = aten.sin.default(%x)
//   %f: f64[4] = aten.exp.default(%z)
//   %grad: f64[4] = aten.mul.Tensor(%grad_output_1, %f)
//   %grad_1: f64[4] = aten.mul.Tensor(%grad_output_0, %z)
//   %grad_2: f64[4] = aten.mul.Tensor(%grad_output_0, %s)
//   %grad_3: f64[4] = aten.add.Tensor(%grad, %grad_2)
//   %grad_4: f64[4] = aten.cos.default(%x)
//   %grad_5: f64[4] = aten.mul.Tensor(%grad_1, %grad_4)
//   %grad_6: f64[4] = aten.full.default([4], 0, dtype=f64)
//   return %grad_5, %grad_6, %grad_3
// }
