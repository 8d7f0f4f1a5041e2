// run: functionalize
// The first iteration writes the input, and the later ones what it gave: refused, whether the input is looked at again or not.
graph(%n: i64[], %x: f32[2]) {
  %m: i64[], %y: f32[2] = higher_order.while_loop(@test, @body, [%n, %x], [])
  return %m
}

graph @test(%n: i64[], %x: f32[2]) {
  %lt: bool[] = aten.lt.Scalar(%n, 3)
  return %lt
}

graph @body(%n: i64[], %x: f32[2]) {
  %next: i64[] = aten.add.Scalar(%n, 1)
  %add_: f32[2] = aten.add_.Scalar(%x, 1)
  %out: f32[2] = aten.mul.Scalar(%x, 2)
  return %next, %out
}

// == functionalize
// error: unsupported: the body of `while_loop` mutates %x and also rebinds it as a carried value
