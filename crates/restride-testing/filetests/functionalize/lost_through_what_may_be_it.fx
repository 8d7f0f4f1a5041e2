// A loop writes what it carries, which may be what an input is: what the input holds then is not known.
// run: functionalize
graph(%x: i64[3], %y: i64[3]) {
  %z: i64[] = aten.full.default([], 0, dtype=i64)
  %i: i64[], %a: i64[3] = higher_order.while_loop(@test, @keep, [%z, %x], [])
  %j: i64[], %b: i64[3] = higher_order.while_loop(@test, @write, [%z, %a], [])
  return %y
}

graph @test(%i: i64[], %a: i64[3]) {
  %t: bool[] = aten.lt.Scalar(%i, 2)
  return %t
}

graph @keep(%i: i64[], %a: i64[3]) {
  %j: i64[] = aten.add.Scalar(%i, 1)
  return %j, %a
}

graph @write(%i: i64[], %a: i64[3]) {
  %j: i64[] = aten.add.Scalar(%i, 1)
  %b: i64[3] = aten.neg_.default(%a)
  return %j, %b
}

// == functionalize
// error: the memory of the results of higher_order.while_loop depends on data, and is written or returned; clone the results of the call, or those of its graphs
