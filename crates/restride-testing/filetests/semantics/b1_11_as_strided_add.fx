// A write through as_strided changes exactly its cells.
// run: functionalize, run
graph(%a: f32[9]) {
  %x: f32[9] = aten.neg.default(%a)
  %v: f32[2, 2][4, 3]+1 = aten.as_strided.default(%x, [2, 2], [4, 3], 1)
  %w: f32[2, 2][4, 3]+1 = aten.add_.Tensor(%v, 100)
  return %x
}

// == functionalize
// stage: functional
//
// graph(%a: f32[9]) {
//   %x: f32[9] = aten.neg.default(%a)
//   %w: f32[2, 2][4, 3]+1 = aten.as_strided.default(%x, [2, 2], [4, 3], 1)
//   %w_1: f32[2, 2][4, 3]+1 = aten.add.Tensor(%w, 100)
//   %w_2: f32[9] = aten.as_strided_scatter.default(%x, %w_1, [2, 2], [4, 3], 1)
//   return %w_2
// }

// == run
// input 0: f32[9][1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0]
// output 0: f32[9][1]+0 = [-0.0 99.0 -2.0 -3.0 96.0 95.0 -6.0 -7.0 92.0]
