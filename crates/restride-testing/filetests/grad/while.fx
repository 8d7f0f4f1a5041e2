// A loop is differentiated as a scan of bounded length.
// run: grad
// trips: 3
graph(%n: i64[], %x: f64[3], %w: f64[3]) {
  %m: i64[], %y: f64[3] = higher_order.while_loop(@test, @body, [%n, %x], [%w])
  %a: f64[3] = aten.mul.Tensor(%y, %y)
  %b: f64[] = aten.sum.default(%a)
  return %b
}
graph @test(%n: i64[], %x: f64[3], %w: f64[3]) {
  %g: bool[] = aten.lt.Scalar(%n, 4)
  return %g
}
graph @body(%n: i64[], %x: f64[3], %w: f64[3]) {
  %m: i64[] = aten.add.Tensor(%n, 1)
  %s: f64[3] = aten.sin.default(%x)
  %y: f64[3] = aten.add.Tensor(%s, %w)
  return %m, %y
}

// == grad
// stage: functional
// output 0: loss
// output 1: gradient of %x
// output 2: gradient of %w
//
// graph(%n: i64[], %x: f64[3], %w: f64[3]) {
//   %trips: i64[3] = aten.full.default([3], 0, dtype=i64)
//   %m: i64[], %y: f64[3], %n_before: i64[3], %x_before: f64[3, 3] = higher_order.scan(@graph10, [%n, %x], [%trips], [%w])
//   %g: bool[] = aten.lt.Scalar(%m, 4)
//   %ended: bool[] = aten.logical_not.default(%g)
//   aten._assert_async.msg(%ended, "the loop runs more than 3 iterations, the limit set by --max-trips")
//   %a: f64[3] = aten.mul.Tensor(%y, %y)
//   %b: f64[] = aten.sum.default(%a)
//   %grad: f64[] = aten.full.default([], 1, dtype=f64)
//   %grad_1: f64[1] = aten.reshape.default(%grad, [1])
//   %grad_2: f64[3][0] = aten.expand.default(%grad_1, [3])
//   %grad_3: f64[3] = aten.mul.Tensor(%grad_2, %y)
//   %grad_4: f64[3] = aten.mul.Tensor(%grad_2, %y)
//   %grad_5: f64[3] = aten.add.Tensor(%grad_3, %grad_4)
//   %grad_6: f64[3] = aten.full.default([3], 0, dtype=f64)
//   %grad_7: i64[3] = aten.flip.default(%n_before, [0])
//   %grad_8: f64[3, 3] = aten.flip.default(%x_before, [0])
//   %grad_9: f64[3], %grad_10: f64[3] = higher_order.scan(@graph9, [%grad_5, %grad_6], [%grad_7, %grad_8], [%w])
//   return %b, %grad_9, %grad_10
// }
//
// graph @graph10(%n: i64[], %x: f64[3], %trip: i64[], %w: f64[3]) {
//   %g: bool[] = aten.lt.Scalar(%n, 4)
//   %m: i64[], %y: f64[3] = higher_order.cond(%g, @body, @graph3, [%n, %x, %w])
//   %out: i64[] = aten.clone.default(%n, memory_format=contiguous_format)
//   %out_1: f64[3] = aten.clone.default(%x, memory_format=contiguous_format)
//   return %m, %y, %out, %out_1
// }
//
// graph @graph9(%grad_output_1: f64[3], %sum: f64[3], %n: i64[], %x: f64[3], %w: f64[3]) {
//   %g: bool[] = aten.lt.Scalar(%n, 4)
//   %grad: f64[3], %grad_1: f64[3] = higher_order.cond(%g, @graph7, @graph8, [%n, %x, %w, %grad_output_1])
//   %sum_1: f64[3] = aten.add.Tensor(%sum, %grad_1)
//   return %grad, %sum_1
// }
//
// graph @body(%n: i64[], %x: f64[3], %w: f64[3]) {
//   %m: i64[] = aten.add.Tensor(%n, 1)
//   %s: f64[3] = aten.sin.default(%x)
//   %y: f64[3] = aten.add.Tensor(%s, %w)
//   return %m, %y
// }
//
// graph @graph3(%n: i64[], %x: f64[3], %w: f64[3]) {
//   %out: i64[] = aten.clone.default(%n, memory_format=contiguous_format)
//   %out_1: f64[3] = aten.clone.default(%x, memory_format=contiguous_format)
//   return %out, %out_1
// }
//
// graph @graph7(%n: i64[], %x: f64[3], %w: f64[3], %grad_output_1: f64[3]) {
//   %grad: f64[3] = aten.cos.default(%x)
//   %grad_1: f64[3] = aten.mul.Tensor(%grad_output_1, %grad)
//   %out: f64[3] = aten.clone.default(%grad_output_1, memory_format=contiguous_format)
//   return %grad_1, %out
// }
//
// graph @graph8(%n: i64[], %x: f64[3], %w: f64[3], %grad_output_1: f64[3]) {
//   %grad: f64[3] = aten.full.default([3], 0, dtype=f64)
//   %out_2: f64[3] = aten.clone.default(%grad_output_1, memory_format=contiguous_format)
//   return %out_2, %grad
// }
