// Data decide whether the loop returns its operand, which PyTorch refuses as the source of a write into itself.
// run: functionalize
graph(%x: f32[0, 4], %i: i64[0, 3], %n: i64[]) {
  %m: i64[] = aten.clone.default(%n)
  %c: i64[], %r: f32[0, 4] = higher_order.while_loop(@test, @body, [%m, %x], [])
  %s: f32[0, 4] = aten.scatter_add_.default(%r, 1, %i, %x)
  return %n
}

graph @test(%i: i64[], %a: f32[0, 4]) {
  %t: bool[] = aten.lt.Scalar(%i, 2)
  return %t
}

graph @body(%i: i64[], %a: f32[0, 4]) {
  %j: i64[] = aten.add.Scalar(%i, 1)
  return %j, %a
}

// == functionalize
// error: the memory of the results of higher_order.while_loop depends on data, and is written or returned (at %s = aten.scatter_add_.default); clone the results of the call, or those of its graphs
