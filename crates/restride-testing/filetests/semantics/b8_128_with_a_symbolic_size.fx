// x.view(s, 2, -1).add_(y) on an input with a symbolic size.
// run: functionalize, run
// sizes: s0=3
symbol s0 in [2, inf]
graph(%x: f32[s0, 4], %y: f32[2, 2]) {
  %v: f32[s0, 2, 2] = aten.view.default(%x, [s0, 2, 2])
  %w: f32[s0, 2, 2] = aten.add_.Tensor(%v, %y)
  %s: f32[s0, 4] = aten.mul.Tensor(%x, 2)
  return %s, %w
}

// == functionalize
// stage: functional
// symbol s0 in [2, inf]
// output 0: mutation of %x
// output 2: user as view f32[s0, 2, 2] of input %x
//
// graph(%x: f32[s0, 4], %y: f32[2, 2]) {
//   %v: f32[s0, 2, 2] = aten.view.default(%x, [s0, 2, 2])
//   %w: f32[s0, 2, 2] = aten.add.Tensor(%v, %y)
//   %w_1: f32[s0, 4] = aten.reshape.default(%w, [s0, 4])
//   %s: f32[s0, 4] = aten.mul.Tensor(%w_1, 2)
//   return %w_1, %s, %w
// }

// == run
// input 0: f32[3, 4][4, 1]+0 = [0.0 2.0 4.0 6.0 4.0 6.0 8.0 10.0 8.0 10.0 12.0 14.0]
// input 1: f32[2, 2][2, 1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[3, 4][4, 1]+0 = [0.0 4.0 8.0 12.0 8.0 12.0 16.0 20.0 16.0 20.0 24.0 28.0]
// output 1: f32[3, 2, 2][4, 2, 1]+0 = [0.0 2.0 4.0 6.0 4.0 6.0 8.0 10.0 8.0 10.0 12.0 14.0], on the storage of input 0
