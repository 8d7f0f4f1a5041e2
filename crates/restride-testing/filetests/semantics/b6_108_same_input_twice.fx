// One tensor given twice stands for itself.
// run: functionalize, run
// share: %x %y
graph(%x: f32[3], %y: f32[3]) {
  %w: f32[3] = aten.add_.Tensor(%x, %y)
  return %y
}

// == functionalize
// input %storage_x_y: storage of %x, %y
// output 0: mutation of %storage_x_y
// output 1: user as view f32[3] of input %storage_x_y
//
// graph(%x: f32[3], %y: f32[3], %storage_x_y: f32[3]) {
//   %w: f32[3] = aten.add.Tensor(%storage_x_y, %storage_x_y)
//   return %w, %w
// }

// == run
// input 0: f32[3][1]+0 = [0.0 2.0 4.0]
// input 1: f32[3][1]+0 = [0.0 2.0 4.0], on the storage of input 0
// output 0: f32[3][1]+0 = [0.0 2.0 4.0], on the storage of input 0
