// x.view(3, 2, -1).add_(y) on an input of known sizes.
// run: functionalize, run
graph(%x: f32[3, 4], %y: f32[2, 2]) {
  %v: f32[3, 2, 2] = aten.view.default(%x, [3, 2, -1])
  %w: f32[3, 2, 2] = aten.add_.Tensor(%v, %y)
  return %w
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: user as view f32[3, 2, 2] of input %x
//
// graph(%x: f32[3, 4], %y: f32[2, 2]) {
//   %v: f32[3, 2, 2] = aten.view.default(%x, [3, 2, -1])
//   %w: f32[3, 2, 2] = aten.add.Tensor(%v, %y)
//   %w_1: f32[3, 4] = aten.reshape.default(%w, [3, 4])
//   return %w_1, %w
// }

// == run
// input 0: f32[3, 4][4, 1]+0 = [0.0 2.0 4.0 6.0 4.0 6.0 8.0 10.0 8.0 10.0 12.0 14.0]
// input 1: f32[2, 2][2, 1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[3, 2, 2][4, 2, 1]+0 = [0.0 2.0 4.0 6.0 4.0 6.0 8.0 10.0 8.0 10.0 12.0 14.0], on the storage of input 0
