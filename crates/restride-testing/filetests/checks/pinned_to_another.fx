// The number is 1, and the check says 3: every way refuses.
// run: functionalize, run
symbol u0 in [3, 3]
graph(%n: i64[2], %x: f32[3]) {
  %select: i64[]+1 = aten.select.int(%n, 0, 1)
  %item: Sym(u0) = aten.item.default(%select)
  aten._assert_scalar.default(Eq(u0, 3), "exactly 3")
  %mul: f32[3] = aten.mul.Tensor(%x, 3)
  return %mul
}

// == functionalize
// stage: functional
// symbol u0 in [3, 3]
//
// graph(%n: i64[2], %x: f32[3]) {
//   %select: i64[]+1 = aten.select.int(%n, 0, 1)
//   %item: Sym(u0) = aten.item.default(%select)
//   aten._assert_scalar.default(Eq(u0, 3), "exactly 3")
//   %mul: f32[3] = aten.mul.Tensor(%x, 3)
//   return %mul
// }

// == run
// error: %item is 1: u0 = 1 must be at least 3 (at %item = aten.item.default)
