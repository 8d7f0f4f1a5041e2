// From the second iteration on both carried tensors are one: what is written through the first is seen in the second.
// Refused.
// run: functionalize
graph(%n: i64[], %x: f32[2]) {
  %a: f32[2] = aten.clone.default(%x)
  %b: f32[2] = aten.clone.default(%x)
  %m: i64[], %y: f32[2], %z: f32[2] = higher_order.while_loop(@test, @body, [%n, %a, %b], [])
  return %z
}

graph @test(%n: i64[], %x: f32[2], %y: f32[2]) {
  %lt: bool[] = aten.lt.Scalar(%n, 3)
  return %lt
}

graph @body(%n: i64[], %x: f32[2], %y: f32[2]) {
  %next: i64[] = aten.add.Scalar(%n, 1)
  %add_: f32[2] = aten.add_.Scalar(%x, 1)
  %out: f32[2] = aten.mul.Tensor(%x, %y)
  %view: f32[2] = aten.alias.default(%out)
  return %next, %out, %view
}

// == functionalize
// error: higher_order.while_loop whose body writes memory that it may see as %a and as %b (at %m, %y, %z = higher_order.while_loop); clone one of them before the loop or in its body
