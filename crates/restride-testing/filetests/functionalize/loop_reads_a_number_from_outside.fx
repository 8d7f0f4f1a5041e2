// The number of iterations is learnt outside of the loop and read in it; the row is chosen by a number that the body learns.
// run: functionalize, run
symbol u0
symbol u1

graph(%x: f32[4, 3], %n: i64[]) {
  %zeros: f32[3] = aten.zeros.default([3])
  %three: i64[] = aten.add.Scalar(%n, 3)
  %item: Sym(u0) = aten.item.default(%three)
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

// == functionalize
// stage: functional
// symbol u0
// symbol u1
//
// graph(%x: f32[4, 3], %n: i64[]) {
//   %zeros: f32[3] = aten.zeros.default([3])
//   %three: i64[] = aten.add.Scalar(%n, 3)
//   %item: Sym(u0) = aten.item.default(%three)
//   %zero: i64[] = aten.scalar_tensor.default(0, dtype=i64)
//   %sum: f32[3], %count: i64[] = higher_order.while_loop(@graph1, @graph2, [%zeros, %zero], [%x])
//   return %sum
// }
//
// graph @graph1(%carried: f32[3], %i: i64[], %x: f32[4, 3]) {
//   %end: i64[] = aten.scalar_tensor.default(u0, dtype=i64)
//   %more: bool[] = aten.lt.Tensor(%i, %end)
//   return %more
// }
//
// graph @graph2(%carried: f32[3], %i: i64[], %x: f32[4, 3]) {
//   %at: Sym(u1) = aten.item.default(%i)
//   %row: f32[3]+3*Mod(u1, 4) = aten.select.int(%x, 0, u1)
//   %add: f32[3] = aten.add.Tensor(%carried, %row)
//   %next: i64[] = aten.add.Scalar(%i, 1)
//   return %add, %next
// }

// == run
// input 0: f32[4, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0]
// input 1: i64[][]+0 = [0]
// output 0: f32[3][1]+0 = [9.0 12.0 15.0]
