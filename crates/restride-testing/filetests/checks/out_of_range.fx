// A range that does not hold.
// run: functionalize, run
symbol u0
graph(%n: i64[2], %x: f32[3]) {
  %select: i64[]+1 = aten.select.int(%n, 0, 1)
  %item: Sym(u0) = aten.item.default(%select)
  aten.sym_constrain_range.default(u0, min=2, max=9)
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
//   aten.sym_constrain_range.default(u0, min=2, max=9)
//   %mul: f32[3] = aten.mul.Tensor(%x, 3)
//   return %mul
// }

// == run
// error: Invalid value range for 1 between [2, 9] (at aten.sym_constrain_range.default)
