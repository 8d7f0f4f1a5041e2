// Whether a loop gives its operand back or a copy of it depends on data, and the branch writes what it gives: what the
// operand is after the branch is not known.
// run: functionalize
graph(%x: i64[3], %flag: bool[], %n: i64[]) {
  %z: i64[] = aten.full.default([], 0, dtype=i64)
  %r: i64[3] = higher_order.cond(%flag, @yes, @no, [%x, %z])
  return %x
}

graph @yes(%a: i64[3], %z: i64[]) {
  %b: i64[3] = aten.add_.Scalar(%a, 1)
  %c: i64[3] = aten.clone.default(%b)
  return %c
}

graph @no(%a: i64[3], %z: i64[]) {
  %i: i64[], %b: i64[3] = higher_order.while_loop(@test, @body, [%z, %a], [])
  %c: i64[3] = aten.add_.Tensor(%b, %a)
  %d: i64[3] = aten.clone.default(%c)
  return %d
}

graph @test(%i: i64[], %a: i64[3]) {
  %t: bool[] = aten.lt.Scalar(%i, 2)
  return %t
}

graph @body(%i: i64[], %a: i64[3]) {
  %j: i64[] = aten.add.Scalar(%i, 1)
  return %j, %a
}

// == functionalize
// error: the memory of the results of higher_order.while_loop depends on data, and is written or returned (at %r = higher_order.cond); clone the results of the call, or those of its graphs
