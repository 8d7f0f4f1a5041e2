// A loop writes two inputs on one storage.
// run: functionalize, run
// share: %x %y
graph(%n: i64[], %x: f32[4], %y: f32[2]+1) {
  %k: i64[] = higher_order.while_loop(@more, @step, [%n], [%x, %y])
  %s: f32[2] = aten.add.Tensor(%y, 1)
  return %k, %s
}
graph @more(%i: i64[], %x: f32[4], %y: f32[2]+1) {
  %c: bool[] = aten.lt.Scalar(%i, 3)
  return %c
}
graph @step(%i: i64[], %x: f32[4], %y: f32[2]+1) {
  %w: f32[4] = aten.add_.Tensor(%x, 1)
  %v: f32[2]+1 = aten.mul_.Tensor(%y, 2)
  %j: i64[] = aten.add.Tensor(%i, 1)
  return %j
}

// == functionalize
// stage: functional
// input %storage_x_y: storage of %x, %y
// output 0: mutation of %storage_x_y
//
// graph(%n: i64[], %x: f32[4], %y: f32[2]+1, %storage_x_y: f32[4]) {
//   %k: i64[], %storage_x_y_1: f32[4] = higher_order.while_loop(@graph1, @graph2, [%n, %storage_x_y], [])
//   %s: f32[2]+1 = aten.slice.Tensor(%storage_x_y_1, 0, 1, 3)
//   %s_1: f32[2] = aten.add.Tensor(%s, 1)
//   return %storage_x_y_1, %k, %s_1
// }
//
// graph @graph1(%i: i64[], %base_0: f32[4]) {
//   %c: bool[] = aten.lt.Scalar(%i, 3)
//   return %c
// }
//
// graph @graph2(%i: i64[], %base_0: f32[4]) {
//   %w: f32[4] = aten.add.Tensor(%base_0, 1)
//   %v: f32[2]+1 = aten.slice.Tensor(%w, 0, 1, 3)
//   %v_1: f32[2]+1 = aten.mul.Tensor(%v, 2)
//   %v_2: f32[4] = aten.slice_scatter.default(%w, %v_1, 0, 1, 3)
//   %j: i64[] = aten.add.Tensor(%i, 1)
//   return %j, %v_2
// }

// == run
// input 0: i64[][]+0 = [0]
// input 1: f32[4][1]+0 = [3.0 22.0 30.0 6.0]
// input 2: f32[2][1]+1 = [22.0 30.0], on the storage of input 1
// output 0: i64[][]+0 = [3]
// output 1: f32[2][1]+0 = [23.0 31.0]
