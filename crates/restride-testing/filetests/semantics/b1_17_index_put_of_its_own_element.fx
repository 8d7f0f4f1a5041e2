// Writes at indices, through a view.
// run: functionalize, run
graph(%x: f32[2, 3], %i: i64[2]) {
  %r: f32[3]+3 = aten.select.int(%x, 0, 1)
  %v: f32[]+5 = aten.select.int(%r, 0, 2)
  %c: f32[] = aten.clone.default(%v)
  %w: f32[3]+3 = aten.index_put_.default(%r, [%i], %c)
  return %x
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: user as view f32[2, 3] of input %x
//
// graph(%x: f32[2, 3], %i: i64[2]) {
//   %r: f32[3]+3 = aten.select.int(%x, 0, 1)
//   %v: f32[]+5 = aten.select.int(%r, 0, 2)
//   %c: f32[] = aten.clone.default(%v)
//   %w: f32[3]+3 = aten.index_put.default(%r, [%i], %c)
//   %w_1: f32[2, 3] = aten.select_scatter.default(%x, %w, 0, 1)
//   return %w_1, %w_1
// }

// == run
// input 0: f32[2, 3][3, 1]+0 = [0.0 1.0 2.0 5.0 5.0 5.0]
// input 1: i64[2][1]+0 = [0 1]
// output 0: f32[2, 3][3, 1]+0 = [0.0 1.0 2.0 5.0 5.0 5.0], on the storage of input 0
