// A check pins a number that is learnt: the check stays on the number, in every stage, though the range says the same.
// run: functionalize, place, run
symbol u0 in [1, 1]
graph(%n: i64[2], %x: f32[3]) {
  %select: i64[]+1 = aten.select.int(%n, 0, 1)
  %item: Sym(u0) = aten.item.default(%select)
  %ge: Sym(Ge(u0, 1)) = _operator.ge(u0, 1)
  aten._assert_scalar.default(Ge(u0, 1), "at least 1")
  %eq: Sym(Eq(u0, 1)) = _operator.eq(u0, 1)
  aten._assert_scalar.default(Eq(u0, 1), "exactly 1")
  %mul: f32[3] = aten.mul.Tensor(%x, 1)
  %add_: f32[3] = aten.add_.Tensor(%mul, %x)
  return %mul
}

// == functionalize
// stage: functional
// symbol u0 in [1, 1]
//
// graph(%n: i64[2], %x: f32[3]) {
//   %select: i64[]+1 = aten.select.int(%n, 0, 1)
//   %item: Sym(u0) = aten.item.default(%select)
//   aten._assert_scalar.default(Ge(u0, 1), "at least 1")
//   aten._assert_scalar.default(Eq(u0, 1), "exactly 1")
//   %mul: f32[3] = aten.mul.Tensor(%x, 1)
//   %add: f32[3] = aten.add.Tensor(%mul, %x)
//   return %add
// }

// == place
// stage: placed
// arena 0 bytes, at least 0 needed, optimal
// buffer buf0: input %n, 16 bytes
// buffer buf1: input %x, 12 bytes
// buffer buf2: output 0, 12 bytes
//
// graph(%n: i64[2] @ buf0[2], %x: f32[3] @ buf1[3]) {
//   free %select @ buf0[]+1 = aten.select.int(%n @ buf0[2], 0, 1)
//   %item = aten.item.default(%select @ buf0[]+1)
//   aten._assert_scalar.default(Ge(u0, 1), "at least 1")
//   aten._assert_scalar.default(Eq(u0, 1), "exactly 1")
//   %mul @ buf2[3] = aten.mul.Tensor(%x @ buf1[3], 1)
//   %add @ buf2[3] = aten.add.Tensor(%mul @ buf2[3], %x @ buf1[3])
//   return %add @ buf2[3]
// }

// == run
// input 0: i64[2][1]+0 = [0 1]
// input 1: f32[3][1]+0 = [0.0 1.0 2.0]
// output 0: f32[3][1]+0 = [0.0 2.0 4.0]
