// Inputs that are two halves of a storage share no cell: they stay apart.
// run: functionalize, run
// share: %x %y
graph(%x: f32[2], %y: f32[2]+2) {
  %w: f32[2] = aten.add_.Tensor(%x, %y)
  %z: f32[2]+2 = aten.mul_.Tensor(%y, 2)
  return %z
}

// == functionalize
// output 0: mutation of %x
// output 1: mutation of %y
// output 2: user as view f32[2]+2 of input %y
//
// graph(%x: f32[2], %y: f32[2]+2) {
//   %w: f32[2] = aten.add.Tensor(%x, %y)
//   %z: f32[2]+2 = aten.mul.Tensor(%y, 2)
//   return %w, %z, %z
// }

// == run
// input 0: f32[2][1]+0 = [2.0 4.0]
// input 1: f32[2][1]+2 = [4.0 6.0], on the storage of input 0
// output 0: f32[2][1]+2 = [4.0 6.0], on the storage of input 0
