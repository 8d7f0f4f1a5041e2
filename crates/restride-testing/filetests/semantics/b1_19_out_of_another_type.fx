// out= of another element type takes the converted result.
// run: functionalize, run
graph(%x: i64[4], %y: i64[4], %o: f32[4]) {
  %r: f32[4] = aten.add.out(%x, %y, out=%o)
  %v: f32[2, 2] = aten.view.default(%o, [2, 2])
  %w: f32[2, 2] = aten.div_.Tensor(%v, 4)
  return %r
}

// == functionalize
// stage: functional
// output 0: mutation of %o
// output 1: user as view f32[4] of input %o
//
// graph(%x: i64[4], %y: i64[4], %o: f32[4]) {
//   %r: i64[4] = aten.add.Tensor(%x, %y)
//   %r_1: f32[4] = aten._to_copy.default(%r, dtype=f32)
//   %v: f32[2, 2] = aten.view.default(%r_1, [2, 2])
//   %w: f32[2, 2] = aten.div.Tensor(%v, 4)
//   %w_1: f32[4] = aten.reshape.default(%w, [4])
//   return %w_1, %w_1
// }

// == run
// input 0: i64[4][1]+0 = [0 1 2 3]
// input 1: i64[4][1]+0 = [0 1 2 3]
// input 2: f32[4][1]+0 = [0.0 0.5 1.0 1.5]
// output 0: f32[4][1]+0 = [0.0 0.5 1.0 1.5], on the storage of input 2
