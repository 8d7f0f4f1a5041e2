// index_put_ with an index left out, on a view.
// run: functionalize, run
graph(%a: f32[2, 3, 2], %i: i64[2], %v: f32[2]) {
  %x: f32[2, 3, 2] = aten.neg.default(%a)
  %t: f32[3, 2, 2][2, 6, 1] = aten.transpose.int(%x, 0, 1)
  %r: f32[3, 2][2, 6]+1 = aten.select.int(%t, 2, 1)
  %w: f32[3, 2][2, 6]+1 = aten.index_put_.default(%r, [None, %i], %v)
  return %x
}

// == functionalize
// stage: functional
//
// graph(%a: f32[2, 3, 2], %i: i64[2], %v: f32[2]) {
//   %x: f32[2, 3, 2] = aten.neg.default(%a)
//   %t: f32[3, 2, 2][2, 6, 1] = aten.transpose.int(%x, 0, 1)
//   %r: f32[3, 2][2, 6]+1 = aten.select.int(%t, 2, 1)
//   %w: f32[3, 2][2, 6]+1 = aten.index_put.default(%r, [None, %i], %v)
//   %w_1: f32[2, 3][6, 2]+1 = aten.permute.default(%w, [1, 0])
//   %w_2: f32[2, 3, 2] = aten.select_scatter.default(%x, %w_1, 2, 1)
//   return %w_2
// }

// == run
// input 0: f32[2, 3, 2][6, 2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0]
// input 1: i64[2][1]+0 = [0 1]
// input 2: f32[2][1]+0 = [0.0 1.0]
// output 0: f32[2, 3, 2][6, 2, 1]+0 = [-0.0 0.0 -2.0 0.0 -4.0 0.0 -6.0 1.0 -8.0 1.0 -10.0 1.0]
