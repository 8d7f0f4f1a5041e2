// An input is set to memory that a loop writes as it carries it: what the input holds then is not known.
// run: functionalize
graph(%x: i64[3], %y: i64[3]) {
  %m: i64[3] = aten.neg.default(%y)
  %s: i64[3] = aten.set_.source_Tensor(%x, %m)
  %z: i64[] = aten.full.default([], 0, dtype=i64)
  %j: i64[], %b: i64[3] = higher_order.while_loop(@test, @write, [%z, %s], [])
  return %y
}

graph @test(%i: i64[], %a: i64[3]) {
  %t: bool[] = aten.lt.Scalar(%i, 2)
  return %t
}

graph @write(%i: i64[], %a: i64[3]) {
  %j: i64[] = aten.add.Scalar(%i, 1)
  %b: i64[3] = aten.neg_.default(%a)
  return %j, %b
}

// == functionalize
// error: unsupported: the body of `while_loop` mutates %s and also rebinds it as a carried value
