// Operators that are composed of views and products: diagonals, blocks, areas, elements written back to their places.
// run: run, functionalize
graph(%x: f32[2, 3], %i: i64[1, 2, 3]) {
  %row: f32[3]+3 = aten.select.int(%x, 0, 1)
  %d: f32[4, 4] = aten.diag.default(%row, 1)
  %k: f32[4, 12] = aten.kron.default(%d, %row)
  %t: f32[2] = aten.trapz.dx(%x, dx=0.5)
  %s: f32[3] = aten.sum_to_size.default(%x, [3])
  %p: f32[1, 2, 3] = aten.unsqueeze.default(%x, 0)
  %u: f32[1, 2, 4] = aten.max_unpool2d.default(%p, %i, [2, 4])
  return %d, %k, %t, %s, %u
}

// == run
// input 0: f32[2, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// input 1: i64[1, 2, 3][6, 3, 1]+0 = [0 1 2 3 4 5]
// output 0: f32[4, 4][4, 1]+0 = [0.0 3.0 0.0 0.0 0.0 0.0 4.0 0.0 0.0 0.0 0.0 5.0 0.0 0.0 0.0 0.0]
// output 1: f32[4, 12][12, 1]+0 = [0.0 0.0 0.0 9.0 12.0 15.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 12.0 16.0 20.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 15.0 20.0 25.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0]
// output 2: f32[2][1]+0 = [1.0 4.0]
// output 3: f32[3][1]+0 = [3.0 5.0 7.0]
// output 4: f32[1, 2, 4][8, 4, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 0.0 0.0]

// == functionalize
// stage: functional
//
// graph(%x: f32[2, 3], %i: i64[1, 2, 3]) {
//   %row: f32[3]+3 = aten.select.int(%x, 0, 1)
//   %d: f32[4, 4] = aten.diag.default(%row, 1)
//   %k: f32[4, 12] = aten.kron.default(%d, %row)
//   %t: f32[2] = aten.trapz.dx(%x, dx=0.5)
//   %s: f32[3] = aten.sum_to_size.default(%x, [3])
//   %p: f32[1, 2, 3] = aten.unsqueeze.default(%x, 0)
//   %u: f32[1, 2, 4] = aten.max_unpool2d.default(%p, %i, [2, 4])
//   return %d, %k, %t, %s, %u
// }
