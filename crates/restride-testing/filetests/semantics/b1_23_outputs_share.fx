// Outputs that share memory with each other and with the written input keep doing so.
// run: functionalize, run
graph(%x: f32[4]) {
  %v: f32[2, 2] = aten.view.default(%x, [2, 2])
  %w: f32[2, 2] = aten.add_.Tensor(%v, 1)
  %y: f32[4] = aten.neg.default(%x)
  %p: f32[3] = aten.slice.Tensor(%y, 0, 0, 3)
  %q: f32[3]+1 = aten.slice.Tensor(%y, 0, 1, 4)
  return %v, %x, %p, %q
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: user as view f32[2, 2] of input %x
// output 2: user as view f32[4] of input %x
// output 3: user as view f32[3] of base 5
// output 4: user as view f32[3]+1 of base 5
// output 5: base
//
// graph(%x: f32[4]) {
//   %v: f32[2, 2] = aten.view.default(%x, [2, 2])
//   %w: f32[2, 2] = aten.add.Tensor(%v, 1)
//   %w_1: f32[4] = aten.reshape.default(%w, [4])
//   %y: f32[4] = aten.neg.default(%w_1)
//   %p: f32[3] = aten.slice.Tensor(%y, 0, 0, 3)
//   %q: f32[3]+1 = aten.slice.Tensor(%y, 0, 1, 4)
//   return %w_1, %w, %w_1, %p, %q, %y
// }

// == run
// input 0: f32[4][1]+0 = [1.0 2.0 3.0 4.0]
// output 0: f32[2, 2][2, 1]+0 = [1.0 2.0 3.0 4.0], on the storage of input 0
// output 1: f32[4][1]+0 = [1.0 2.0 3.0 4.0], on the storage of input 0
// output 2: f32[3][1]+0 = [-1.0 -2.0 -3.0]
// output 3: f32[3][1]+1 = [-2.0 -3.0 -4.0], on the storage of output 2
