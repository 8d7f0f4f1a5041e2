// The sizes that types are asked at satisfy the check: 7 and 11, which are tried first, do not.
// run: functionalize, reinplace, run
symbol u0 in [0, 5]
symbol u1 in [0, 5]
graph(%n: i64[2], %x: f32[1]) {
  %first: i64[] = aten.select.int(%n, 0, 0)
  %item: Sym(u0) = aten.item.default(%first)
  %second: i64[]+1 = aten.select.int(%n, 0, 1)
  %item_1: Sym(u1) = aten.item.default(%second)
  aten._assert_scalar.default(Eq(u0 + 1, u1), "one apart")
  aten._assert_scalar.default(Le(u0*u1, 6), "few")
  %zeros: f32[u0 + 1] = aten.zeros.default([u0 + 1])
  %ones: f32[u1] = aten.ones.default([u1])
  %add: f32[u1] = aten.add.Tensor(%zeros, %ones)
  %add_: f32[u1] = aten.add_.Tensor(%add, %x)
  return %add
}

// == functionalize
// stage: functional
// symbol u0 in [0, 5]
// symbol u1 in [0, 5]
//
// graph(%n: i64[2], %x: f32[1]) {
//   %first: i64[] = aten.select.int(%n, 0, 0)
//   %item: Sym(u0) = aten.item.default(%first)
//   %second: i64[]+1 = aten.select.int(%n, 0, 1)
//   %item_1: Sym(u1) = aten.item.default(%second)
//   aten._assert_scalar.default(Eq(u0 + 1, u1), "one apart")
//   aten._assert_scalar.default(Le(u0*u1, 6), "few")
//   %zeros: f32[u0 + 1] = aten.zeros.default([u0 + 1])
//   %ones: f32[u1] = aten.ones.default([u1])
//   %add: f32[u1] = aten.add.Tensor(%zeros, %ones)
//   %add_1: f32[u1] = aten.add.Tensor(%add, %x)
//   return %add_1
// }

// == reinplace
// symbol u0 in [0, 5]
// symbol u1 in [0, 5]
//
// graph(%n: i64[2], %x: f32[1]) {
//   %first: i64[] = aten.select.int(%n, 0, 0)
//   %item: Sym(u0) = aten.item.default(%first)
//   %second: i64[]+1 = aten.select.int(%n, 0, 1)
//   %item_1: Sym(u1) = aten.item.default(%second)
//   aten._assert_scalar.default(Eq(u0 + 1, u1), "one apart")
//   aten._assert_scalar.default(Le(u0*u1, 6), "few")
//   %zeros: f32[u0 + 1] = aten.zeros.default([u0 + 1])
//   %ones: f32[u1] = aten.ones.default([u1])
//   %add: f32[u1] = aten.add.out(%zeros, %ones, out=%ones)
//   %add_1: f32[u1] = aten.add_.Tensor(%add, %x)
//   return %add_1
// }

// == run
// input 0: i64[2][1]+0 = [0 1]
// input 1: f32[1][1]+0 = [0.0]
// output 0: f32[1][1]+0 = [1.0]
