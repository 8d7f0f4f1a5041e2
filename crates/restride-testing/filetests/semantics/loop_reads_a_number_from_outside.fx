// The number of iterations is learnt outside of the loop and read in it; the row is chosen by a number that the body learns.
// run: functionalize, run
symbol u0
symbol u1

graph(%x: f32[4, 3], %n: i64[]) {
  %zeros: f32[3] = aten.zeros.default([3])
  %item: Sym(u0) = aten.item.default(%n)
  %zero: i64[] = aten.scalar_tensor.default(0, dtype=i64)
  %sum: f32[3], %count: i64[] = higher_order.while_loop(@condition, @body, [%zeros, %zero], [%x])
  return %sum
}

graph @condition(%carried: f32[3], %i: i64[], %x: f32[4, 3]) {
  %end: i64[] = aten.scalar_tensor.default(u0, dtype=i64)
  %more: bool[] = aten.lt.Tensor(%i, %end)
  return %more
}

graph @body(%carried: f32[3], %i: i64[], %x: f32[4, 3]) {
  %at: Sym(u1) = aten.item.default(%i)
  %row: f32[3]+3*Mod(u1, 4) = aten.select.int(%x, 0, u1)
  %add: f32[3] = aten.add.Tensor(%carried, %row)
  %next: i64[] = aten.add.Scalar(%i, 1)
  return %add, %next
}
