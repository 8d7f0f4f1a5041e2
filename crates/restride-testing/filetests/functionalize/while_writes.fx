// A loop whose body writes a tensor that it does not carry.
// run: functionalize, run
graph(%n: i64[], %x: f32[2]) {
  %k: i64[] = higher_order.while_loop(@more, @step, [%n], [%x])
  return %k
}
graph @more(%i: i64[], %x: f32[2]) {
  %c: bool[] = aten.lt.Scalar(%i, 3)
  return %c
}
graph @step(%i: i64[], %x: f32[2]) {
  %w: f32[2] = aten.add_.Tensor(%x, 1)
  %j: i64[] = aten.add.Tensor(%i, 1)
  return %j
}

// == functionalize
// output 0: mutation of %x
//
// graph(%n: i64[], %x: f32[2]) {
//   %k: i64[], %x_1: f32[2] = higher_order.while_loop(@graph1, @graph2, [%n, %x], [])
//   return %x_1, %k
// }
//
// graph @graph1(%i: i64[], %base_0: f32[2]) {
//   %c: bool[] = aten.lt.Scalar(%i, 3)
//   return %c
// }
//
// graph @graph2(%i: i64[], %base_0: f32[2]) {
//   %w: f32[2] = aten.add.Tensor(%base_0, 1)
//   %j: i64[] = aten.add.Tensor(%i, 1)
//   return %j, %w
// }

// == run
// input 0: i64[][]+0 = [0]
// input 1: f32[2][1]+0 = [3.0 4.0]
// output 0: i64[][]+0 = [3]
