// out= into a fresh tensor without sizes: it takes the result's, and views of it come after.
// run: functionalize, run
graph(%x: f32[4, 2], %y: f32[4, 2]) {
  %e: f32[] = aten.empty.memory_format([], dtype=f32)
  %r: f32[4, 2] = aten.add.out(%x, %y, out=%e)
  %v: f32[8] = aten.view.default(%e, [8])
  %w: f32[8] = aten.add_.Tensor(%v, 1)
  return %e, %w
}

// == functionalize
// stage: functional
// output 0: user as view f32[4, 2] of base 2
// output 1: user as view f32[8] of base 2
// output 2: base
//
// graph(%x: f32[4, 2], %y: f32[4, 2]) {
//   %r: f32[4, 2] = aten.add.Tensor(%x, %y)
//   %v: f32[8] = aten.view.default(%r, [8])
//   %w: f32[8] = aten.add.Tensor(%v, 1)
//   %w_1: f32[4, 2] = aten.reshape.default(%w, [4, 2])
//   return %w_1, %w, %w_1
// }

// == run
// input 0: f32[4, 2][2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0]
// input 1: f32[4, 2][2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0]
// output 0: f32[4, 2][2, 1]+0 = [1.0 3.0 5.0 7.0 9.0 11.0 13.0 15.0]
// output 1: f32[8][1]+0 = [1.0 3.0 5.0 7.0 9.0 11.0 13.0 15.0], on the storage of output 0
