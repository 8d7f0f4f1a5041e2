// One tensor given twice stands for itself.
// run: functionalize, run
// share: %x %y
graph(%x: f32[3], %y: f32[3]) {
  %w: f32[3] = aten.add_.Tensor(%x, %y)
  return %y
}

// == functionalize
// output 0: mutation of %x
// output 1: user as view f32[3] of input %x
//
// graph(%x: f32[3], %y: f32[3]) {
//   %w: f32[3] = aten.add.Tensor(%x, %x)
//   return %w, %w
// }

// == run
// input 0: f32[3][1]+0 = [0.0 2.0 4.0]
// input 1: f32[3][1]+0 = [0.0 2.0 4.0], on the storage of input 0
// output 0: f32[3][1]+0 = [0.0 2.0 4.0], on the storage of input 0
