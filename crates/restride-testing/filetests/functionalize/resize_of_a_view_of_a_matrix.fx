// A transposed view is resized: it becomes the front of the memory, row-major.
// run: functionalize, run
graph(%a: f32[2, 3]) {
  %x: f32[2, 3] = aten.neg.default(%a)
  %t: f32[3, 2][1, 3] = aten.t.default(%x)
  %r: f32[2, 2] = aten.resize_.default(%t, [2, 2])
  %w: f32[2, 2] = aten.add_.Tensor(%t, 10)
  return %x, %t
}

// == functionalize
// stage: functional
// output 0: user as view f32[2, 3] of base 2
// output 1: user as view f32[2, 2] of base 2
// output 2: base
//
// graph(%a: f32[2, 3]) {
//   %x: f32[2, 3] = aten.neg.default(%a)
//   %w: f32[2, 2] = aten.as_strided.default(%x, [2, 2], [2, 1], 0)
//   %w_1: f32[2, 2] = aten.add.Tensor(%w, 10)
//   %w_2: f32[2, 3] = aten.as_strided_scatter.default(%x, %w_1, [2, 2], [2, 1], 0)
//   return %w_2, %w_1, %w_2
// }

// == run
// input 0: f32[2, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// output 0: f32[2, 3][3, 1]+0 = [10.0 9.0 8.0 7.0 -4.0 -5.0]
// output 1: f32[2, 2][2, 1]+0 = [10.0 9.0 8.0 7.0], on the storage of output 0
