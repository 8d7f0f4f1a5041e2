// index_put_ that accumulates, through a transposed view; then a mask on the flat one.
// run: functionalize, run
graph(%x: f32[2, 3], %i: i64[3]) {
  %t: f32[3, 2][1, 3] = aten.t.default(%x)
  %f: f32[6] = aten.reshape.default(%x, [6])
  %j: i64[3] = aten.remainder.Scalar(%i, 2)
  %c: f32[3, 2][1, 3] = aten.clone.default(%t)
  %w: f32[3, 2][1, 3] = aten.index_put_.default(%t, [%j], %c, True)
  %m: bool[6] = aten.gt.Scalar(%f, 2)
  %v: f32[6] = aten.masked_fill_.Scalar(%f, %m, 2)
  return %x
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: user as view f32[2, 3] of input %x
//
// graph(%x: f32[2, 3], %i: i64[3]) {
//   %j: i64[3] = aten.remainder.Scalar(%i, 2)
//   %t: f32[3, 2][1, 3] = aten.t.default(%x)
//   %c: f32[3, 2][1, 3] = aten.clone.default(%t)
//   %w: f32[3, 2][1, 3] = aten.index_put.default(%t, [%j], %c, True)
//   %w_1: f32[2, 3] = aten.permute.default(%w, [1, 0])
//   %m: f32[6] = aten.reshape.default(%w_1, [6])
//   %m_1: bool[6] = aten.gt.Scalar(%m, 2)
//   %v: f32[6] = aten.masked_fill.Scalar(%m, %m_1, 2)
//   %v_1: f32[2, 3] = aten.reshape.default(%v, [2, 3])
//   return %v_1, %v_1
// }

// == run
// input 0: f32[2, 3][3, 1]+0 = [2.0 2.0 2.0 2.0 2.0 2.0]
// input 1: i64[3][1]+0 = [0 1 2]
// output 0: f32[2, 3][3, 1]+0 = [2.0 2.0 2.0 2.0 2.0 2.0], on the storage of input 0
