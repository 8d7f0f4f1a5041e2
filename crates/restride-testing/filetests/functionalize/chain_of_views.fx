// A write through select of a transposed slice lands in exactly its cells.
// run: functionalize, run
graph(%a: f32[4, 3]) {
  %x: f32[4, 3] = aten.clone.default(%a)
  %s: f32[2, 3][6, 1]+3 = aten.slice.Tensor(%x, 0, 1, 4, 2)
  %t: f32[3, 2][1, 6]+3 = aten.transpose.int(%s, 0, 1)
  %c: f32[2][6]+5 = aten.select.int(%t, 0, 2)
  %w: f32[2][6]+5 = aten.fill_.Scalar(%c, 100)
  return %x
}

// == functionalize
// stage: functional
//
// graph(%a: f32[4, 3]) {
//   %x: f32[4, 3] = aten.clone.default(%a)
//   %s: f32[2, 3][6, 1]+3 = aten.slice.Tensor(%x, 0, 1, 4, 2)
//   %t: f32[3, 2][1, 6]+3 = aten.transpose.int(%s, 0, 1)
//   %c: f32[2][6]+5 = aten.select.int(%t, 0, 2)
//   %w: f32[2][6]+5 = aten.fill.Scalar(%c, 100)
//   %w_1: f32[4, 3] = aten.as_strided_scatter.default(%x, %w, [2], [6], 5)
//   return %w_1
// }

// == run
// input 0: f32[4, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0]
// output 0: f32[4, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 100.0 6.0 7.0 8.0 9.0 10.0 100.0]
