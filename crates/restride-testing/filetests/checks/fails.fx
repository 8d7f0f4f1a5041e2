// A check without a range that fails: its words are the error.
// run: functionalize, run
symbol u0
graph(%n: i64[2], %x: f32[3]) {
  %select: i64[]+1 = aten.select.int(%n, 0, 1)
  %item: Sym(u0) = aten.item.default(%select)
  aten._assert_scalar.default(Ne(Mod(u0, 2), 1), "even numbers alone")
  %mul: f32[3] = aten.mul.Tensor(%x, 3)
  return %mul
}

// == functionalize
// stage: functional
// symbol u0
//
// graph(%n: i64[2], %x: f32[3]) {
//   %select: i64[]+1 = aten.select.int(%n, 0, 1)
//   %item: Sym(u0) = aten.item.default(%select)
//   aten._assert_scalar.default(Ne(Mod(u0, 2), 1), "even numbers alone")
//   %mul: f32[3] = aten.mul.Tensor(%x, 3)
//   return %mul
// }

// == run
// error: even numbers alone (at aten._assert_scalar.default)
