// The check says why where sizes do not fit behind it: not the sum of tensors of unlike sizes.
// run: functionalize, run
symbol u0 in [0, inf]
symbol u1 in [0, inf]
graph(%n: i64[4]) {
  %first: i64[]+2 = aten.select.int(%n, 0, 2)
  %item: Sym(u0) = aten.item.default(%first)
  %second: i64[]+3 = aten.select.int(%n, 0, 3)
  %item_1: Sym(u1) = aten.item.default(%second)
  aten._assert_scalar.default(Eq(u0, u1), "equal lengths")
  %zeros: f32[u0] = aten.zeros.default([u0])
  %ones: f32[u1] = aten.ones.default([u1])
  %add: f32[u0] = aten.add.Tensor(%zeros, %ones)
  return %add
}

// == functionalize
// stage: functional
// symbol u0 in [0, inf]
// symbol u1 in [0, inf]
//
// graph(%n: i64[4]) {
//   %first: i64[]+2 = aten.select.int(%n, 0, 2)
//   %item: Sym(u0) = aten.item.default(%first)
//   %second: i64[]+3 = aten.select.int(%n, 0, 3)
//   %item_1: Sym(u1) = aten.item.default(%second)
//   aten._assert_scalar.default(Eq(u0, u1), "equal lengths")
//   %zeros: f32[u0] = aten.zeros.default([u0])
//   %ones: f32[u1] = aten.ones.default([u1])
//   %add: f32[u0] = aten.add.Tensor(%zeros, %ones)
//   return %add
// }

// == run
// error: equal lengths (at aten._assert_scalar.default)
