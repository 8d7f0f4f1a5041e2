// Dropout that does not train gives its argument: a write to what it gives is a write to that.
// run: functionalize, run
graph(%x: f32[4]) {
  %d: f32[4] = aten.dropout.default(%x, 0.5, False)
  %w: f32[4] = aten.add_.Tensor(%d, 1)
  %y: f32[4] = aten.mul.Tensor(%x, 2)
  return %d, %y
}

// == functionalize
// output 0: mutation of %x
// output 1: user as view f32[4] of input %x
//
// graph(%x: f32[4]) {
//   %w: f32[4] = aten.add.Tensor(%x, 1)
//   %y: f32[4] = aten.mul.Tensor(%w, 2)
//   return %w, %w, %y
// }

// == run
// input 0: f32[4][1]+0 = [1.0 2.0 3.0 4.0]
// output 0: f32[4][1]+0 = [1.0 2.0 3.0 4.0], on the storage of input 0
// output 1: f32[4][1]+0 = [2.0 4.0 6.0 8.0]
