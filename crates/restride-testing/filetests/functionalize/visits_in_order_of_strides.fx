// Overlapping windows whose first dimension is the fastest: the last visit stays, and the strides say which is last.
// run: functionalize, run
graph(%x: f32[9], %y: f32[3, 3]) {
  %u: f32[3, 3][1, 2] = aten.as_strided.default(%x, [3, 3], [1, 2])
  %w: f32[3, 3][1, 2] = aten.copy_.default(%u, %y)
  return %x
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: user as view f32[9] of input %x
//
// graph(%x: f32[9], %y: f32[3, 3]) {
//   %w_1: f32[3, 3][1, 3] = aten.permute.default(%y, [1, 0])
//   %w_2: f32[3][3] = aten.select.int(%w_1, 0, 0)
//   %w_3: f32[9] = aten.slice_scatter.default(%x, %w_2, 0, 0, 3)
//   %w_5: f32[3, 3][1, 3] = aten.permute.default(%y, [1, 0])
//   %w_6: f32[3][3]+1 = aten.select.int(%w_5, 0, 1)
//   %w_7: f32[9] = aten.slice_scatter.default(%w_3, %w_6, 0, 2, 5)
//   %w_9: f32[3, 3][1, 3] = aten.permute.default(%y, [1, 0])
//   %w_10: f32[3][3]+2 = aten.select.int(%w_9, 0, 2)
//   %w_11: f32[9] = aten.slice_scatter.default(%w_7, %w_10, 0, 4, 7)
//   return %w_11, %w_11
// }

// == run
// input 0: f32[9][1]+0 = [0.0 3.0 1.0 4.0 2.0 5.0 8.0 7.0 8.0]
// input 1: f32[3, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0]
// output 0: f32[9][1]+0 = [0.0 3.0 1.0 4.0 2.0 5.0 8.0 7.0 8.0], on the storage of input 0
