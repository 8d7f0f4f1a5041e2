// Checks of tensors, of types and of ranges are kept, and hold here.
// run: functionalize, place, run
symbol u0 in [0, 9]
graph(%n: i64[2], %x: f32[3]) {
  aten._assert_tensor_metadata.default(%x, [3], [1], torch.float32)
  %select: i64[]+1 = aten.select.int(%n, 0, 1)
  %eq: bool[] = aten.eq.Scalar(%select, 1)
  aten._assert_async.msg(%eq, "the second is one")
  %item: Sym(u0) = aten.item.default(%select)
  aten.sym_constrain_range.default(u0, min=0, max=9)
  %mul: f32[3] = aten.mul.Tensor(%x, 3)
  return %mul
}

// == functionalize
// stage: functional
// symbol u0 in [0, 9]
//
// graph(%n: i64[2], %x: f32[3]) {
//   aten._assert_tensor_metadata.default(%x, [3], [1], f32)
//   %select: i64[]+1 = aten.select.int(%n, 0, 1)
//   %eq: bool[] = aten.eq.Scalar(%select, 1)
//   aten._assert_async.msg(%eq, "the second is one")
//   %item: Sym(u0) = aten.item.default(%select)
//   aten.sym_constrain_range.default(u0, min=0, max=9)
//   %mul: f32[3] = aten.mul.Tensor(%x, 3)
//   return %mul
// }

// == place
// stage: placed
// arena 64 bytes, at least 64 needed, optimal
// buffer buf0: input %n, 16 bytes
// buffer buf1: input %x, 12 bytes
// buffer buf2: arena, 1 bytes at 0
// buffer buf3: output 0, 12 bytes
//
// graph(%n: i64[2] @ buf0[2], %x: f32[3] @ buf1[3]) {
//   aten._assert_tensor_metadata.default(%x @ buf1[3], [3], [1], f32)
//   free %select @ buf0[]+1 = aten.select.int(%n @ buf0[2], 0, 1)
//   %eq @ buf2[] = aten.eq.Scalar(%select @ buf0[]+1, 1)
//   aten._assert_async.msg(%eq @ buf2[], "the second is one")
//   %item = aten.item.default(%select @ buf0[]+1)
//   aten.sym_constrain_range.default(u0, min=0, max=9)
//   %mul @ buf3[3] = aten.mul.Tensor(%x @ buf1[3], 3)
//   return %mul @ buf3[3]
// }

// == run
// input 0: i64[2][1]+0 = [0 1]
// input 1: f32[3][1]+0 = [0.0 1.0 2.0]
// output 0: f32[3][1]+0 = [0.0 3.0 6.0]
