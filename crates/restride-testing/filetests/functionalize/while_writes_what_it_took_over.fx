// The second iteration carries the additional operand, and writes it: the third sees that in both. Refused.
// run: functionalize
graph(%n: i64[], %x: f32[2], %y: f32[2]) {
  %a: f32[2] = aten.clone.default(%x)
  %b: f32[2] = aten.clone.default(%y)
  %m: i64[], %z: f32[2] = higher_order.while_loop(@test, @body, [%n, %a], [%b])
  return %m, %b
}

graph @test(%n: i64[], %x: f32[2], %y: f32[2]) {
  %lt: bool[] = aten.lt.Scalar(%n, 3)
  return %lt
}

graph @body(%n: i64[], %x: f32[2], %y: f32[2]) {
  %next: i64[] = aten.add.Scalar(%n, 1)
  %add_: f32[2] = aten.add_.Scalar(%x, 1)
  return %next, %y
}

// == functionalize
// error: higher_order.while_loop whose body writes memory that it may see as %a and as %b (at %m, %z = higher_order.while_loop); clone one of them before the loop or in its body
