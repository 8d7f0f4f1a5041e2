// A body that writes into an operand what is there already: a write all the same, and nothing changes.
// run: functionalize, run
graph(%n: i64[], %x: f32[2], %y: f32[2]) {
  %m: i64[], %z: f32[2] = higher_order.while_loop(@test, @body, [%n, %x], [%y])
  return %z
}

graph @test(%n: i64[], %x: f32[2], %y: f32[2]) {
  %lt: bool[] = aten.lt.Scalar(%n, 3)
  return %lt
}

graph @body(%n: i64[], %x: f32[2], %y: f32[2]) {
  %next: i64[] = aten.add.Scalar(%n, 1)
  %c: f32[2] = aten.clone.default(%y)
  %w: f32[2] = aten.copy_.default(%y, %c)
  %out: f32[2] = aten.add.Tensor(%x, %y)
  return %next, %out
}

// == functionalize
// output 0: mutation of %y
//
// graph(%n: i64[], %x: f32[2], %y: f32[2]) {
//   %m: i64[], %z: f32[2], %y_1: f32[2] = higher_order.while_loop(@graph1, @graph2, [%n, %x, %y], [])
//   return %y_1, %z
// }
//
// graph @graph1(%n: i64[], %x: f32[2], %base_0: f32[2]) {
//   %lt: bool[] = aten.lt.Scalar(%n, 3)
//   return %lt
// }
//
// graph @graph2(%n: i64[], %x: f32[2], %base_0: f32[2]) {
//   %next: i64[] = aten.add.Scalar(%n, 1)
//   %c: f32[2] = aten.clone.default(%base_0)
//   %out: f32[2] = aten.add.Tensor(%x, %c)
//   return %next, %out, %c
// }

// == run
// input 0: i64[][]+0 = [0]
// input 1: f32[2][1]+0 = [0.0 1.0]
// input 2: f32[2][1]+0 = [0.0 1.0]
// output 0: f32[2][1]+0 = [0.0 4.0]
