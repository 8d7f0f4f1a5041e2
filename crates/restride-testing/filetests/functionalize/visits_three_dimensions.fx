// Three dimensions, sorted by strides.
// run: functionalize, run
graph(%x: f32[12], %y: f32[2, 3, 2]) {
  %u: f32[2, 3, 2][1, 3, 2] = aten.as_strided.default(%x, [2, 3, 2], [1, 3, 2])
  %w: f32[2, 3, 2][1, 3, 2] = aten.copy_.default(%u, %y)
  return %x
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: user as view f32[12] of input %x
//
// graph(%x: f32[12], %y: f32[2, 3, 2]) {
//   %w_1: f32[3, 2, 2][2, 1, 6] = aten.permute.default(%y, [1, 2, 0])
//   %w_2: f32[2, 2][1, 6] = aten.select.int(%w_1, 0, 0)
//   %w_3: f32[12] = aten.as_strided_scatter.default(%x, %w_2, [2, 2], [2, 1], 0)
//   %w_5: f32[3, 2, 2][2, 1, 6] = aten.permute.default(%y, [1, 2, 0])
//   %w_6: f32[2, 2][1, 6]+2 = aten.select.int(%w_5, 0, 1)
//   %w_7: f32[12] = aten.as_strided_scatter.default(%w_3, %w_6, [2, 2], [2, 1], 3)
//   %w_9: f32[3, 2, 2][2, 1, 6] = aten.permute.default(%y, [1, 2, 0])
//   %w_10: f32[2, 2][1, 6]+4 = aten.select.int(%w_9, 0, 2)
//   %w_11: f32[12] = aten.as_strided_scatter.default(%w_7, %w_10, [2, 2], [2, 1], 6)
//   return %w_11, %w_11
// }

// == run
// input 0: f32[12][1]+0 = [0.0 6.0 1.0 2.0 8.0 3.0 4.0 10.0 5.0 11.0 10.0 11.0]
// input 1: f32[2, 3, 2][6, 2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0]
// output 0: f32[12][1]+0 = [0.0 6.0 1.0 2.0 8.0 3.0 4.0 10.0 5.0 11.0 10.0 11.0], on the storage of input 0
