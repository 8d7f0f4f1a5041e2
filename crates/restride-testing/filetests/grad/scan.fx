// The gradient of a scan is one over its iterations in reverse, from what was carried into each.
// run: grad
graph(%n: i64[], %h: f64[3], %xs: f64[5, 3], %w: f64[3, 3]) {
  %c: i64[], %last: f64[3], %ys: f64[5, 3], %unused: f64[5] = higher_order.scan(@step, [%n, %h], [%xs], [%w])
  %a: f64[5, 3] = aten.mul.Tensor(%ys, %ys)
  %b: f64[] = aten.sum.default(%a)
  %d: f64[] = aten.sum.default(%last)
  %e: f64[] = aten.add.Tensor(%b, %d)
  return %e
}
graph @step(%n: i64[], %h: f64[3], %x: f64[3], %w: f64[3, 3]) {
  %m: i64[] = aten.add.Tensor(%n, 1)
  %f: f64[] = aten._to_copy.default(%m, dtype=f64)
  %v: f64[3] = aten.mv.default(%w, %h)
  %s: f64[3] = aten.add.Tensor(%v, %x)
  %t: f64[3] = aten.tanh.default(%s)
  %y: f64[3] = aten.mul.Tensor(%t, %f)
  %u: f64[] = aten.sum.default(%x)
  return %m, %t, %y, %u
}

// == grad
// stage: functional
// output 0: loss
// output 1: gradient of %h
// output 2: gradient of %xs
// output 3: gradient of %w
//
// graph(%n: i64[], %h: f64[3], %xs: f64[5, 3], %w: f64[3, 3]) {
//   %c: i64[], %last: f64[3], %ys: f64[5, 3], %unused: f64[5], %n_before: i64[5], %h_before: f64[5, 3] = higher_order.scan(@graph3, [%n, %h], [%xs], [%w])
//   %a: f64[5, 3] = aten.mul.Tensor(%ys, %ys)
//   %b: f64[] = aten.sum.default(%a)
//   %d: f64[] = aten.sum.default(%last)
//   %e: f64[] = aten.add.Tensor(%b, %d)
//   %grad: f64[] = aten.full.default([], 1, dtype=f64)
//   %grad_1: f64[1] = aten.reshape.default(%grad, [1])
//   %grad_2: f64[3][0] = aten.expand.default(%grad_1, [3])
//   %grad_3: f64[1, 1] = aten.reshape.default(%grad, [1, 1])
//   %grad_4: f64[5, 3][0, 0] = aten.expand.default(%grad_3, [5, 3])
//   %grad_5: f64[5, 3] = aten.mul.Tensor(%grad_4, %ys)
//   %grad_6: f64[5, 3] = aten.mul.Tensor(%grad_4, %ys)
//   %grad_7: f64[5, 3] = aten.add.Tensor(%grad_5, %grad_6)
//   %grad_8: f64[3, 3] = aten.full.default([3, 3], 0, dtype=f64)
//   %grad_9: f64[5, 3] = aten.flip.default(%xs, [0])
//   %grad_10: i64[5] = aten.flip.default(%n_before, [0])
//   %grad_11: f64[5, 3] = aten.flip.default(%h_before, [0])
//   %grad_12: f64[5, 3] = aten.flip.default(%grad_7, [0])
//   %grad_13: f64[3], %grad_14: f64[3, 3], %grad_15: f64[5, 3] = higher_order.scan(@graph2, [%grad_2, %grad_8], [%grad_9, %grad_10, %grad_11, %grad_12], [%w])
//   %grad_16: f64[5, 3] = aten.flip.default(%grad_15, [0])
//   return %e, %grad_13, %grad_16, %grad_14
// }
//
// graph @graph3(%n: i64[], %h: f64[3], %x: f64[3], %w: f64[3, 3]) {
//   %m: i64[] = aten.add.Tensor(%n, 1)
//   %f: f64[] = aten._to_copy.default(%m, dtype=f64)
//   %v: f64[3] = aten.mv.default(%w, %h)
//   %s: f64[3] = aten.add.Tensor(%v, %x)
//   %t: f64[3] = aten.tanh.default(%s)
//   %y: f64[3] = aten.mul.Tensor(%t, %f)
//   %u: f64[] = aten.sum.default(%x)
//   %out: i64[] = aten.clone.default(%n, memory_format=contiguous_format)
//   %out_1: f64[3] = aten.clone.default(%h, memory_format=contiguous_format)
//   return %m, %t, %y, %u, %out, %out_1
// }
//
// graph @graph2(
//   %grad_output_1: f64[3],
//   %sum: f64[3, 3],
//   %x: f64[3],
//   %n: i64[],
//   %h: f64[3],
//   %grad_output_2: f64[3],
//   %w: f64[3, 3],
// ) {
//   %m: i64[] = aten.add.Tensor(%n, 1)
//   %f: f64[] = aten._to_copy.default(%m, dtype=f64)
//   %v: f64[3] = aten.mv.default(%w, %h)
//   %s: f64[3] = aten.add.Tensor(%v, %x)
//   %t: f64[3] = aten.tanh.default(%s)
//   %grad: f64[3] = aten.mul.Tensor(%grad_output_2, %f)
//   %grad_1: f64[3] = aten.add.Tensor(%grad_output_1, %grad)
//   %grad_2: f64[3] = aten.tanh_backward.default(%grad_1, %t)
//   %grad_3: f64[3, 1] = aten.unsqueeze.default(%grad_2, 1)
//   %grad_4: f64[1, 3] = aten.unsqueeze.default(%h, 0)
//   %grad_5: f64[3, 3] = aten.mul.Tensor(%grad_3, %grad_4)
//   %grad_6: f64[3, 3][1, 3] = aten.transpose.int(%w, -2, -1)
//   %grad_7: f64[3] = aten.mv.default(%grad_6, %grad_2)
//   %sum_1: f64[3, 3] = aten.add.Tensor(%sum, %grad_5)
//   return %grad_7, %sum_1, %grad_2
// }
