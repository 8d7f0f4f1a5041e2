// Inputs that are columns of one matrix, in turn: no cell in common, whatever the ranges say.
// run: functionalize, run
// share: %x %y %z
graph(%x: f32[3][3], %y: f32[3][3]+1, %z: f32[3][3]+2) {
  %w: f32[3][3]+1 = aten.add_.Tensor(%y, 10)
  %s: f32[3] = aten.add.Tensor(%x, %z)
  return %s
}

// == functionalize
// output 0: mutation of %y
//
// graph(%x: f32[3][3], %y: f32[3][3]+1, %z: f32[3][3]+2) {
//   %w: f32[3][3]+1 = aten.add.Tensor(%y, 10)
//   %s: f32[3] = aten.add.Tensor(%x, %z)
//   return %w, %s
// }

// == run
// input 0: f32[3][3]+0 = [0.0 3.0 6.0]
// input 1: f32[3][3]+1 = [11.0 14.0 17.0], on the storage of input 0
// input 2: f32[3][3]+2 = [2.0 5.0 8.0], on the storage of input 0
// output 0: f32[3][1]+0 = [2.0 8.0 14.0]
