// One tensor given twice, written under the first name and read under the other, which is returned.
// run: functionalize, run, part-later
// share: %x %y
graph(%x: f32[3], %y: f32[3]) {
  %w: f32[3] = aten.mul_.Tensor(%x, 2)
  %s: f32[3] = aten.add.Tensor(%y, 1)
  return %y, %s
}

// == functionalize
// input %storage_x_y: storage of %x, %y
// output 0: mutation of %storage_x_y
// output 1: user as view f32[3] of input %storage_x_y
//
// graph(%x: f32[3], %y: f32[3], %storage_x_y: f32[3]) {
//   %w: f32[3] = aten.mul.Tensor(%storage_x_y, 2)
//   %s: f32[3] = aten.add.Tensor(%w, 1)
//   return %w, %w, %s
// }

// == run
// input 0: f32[3][1]+0 = [0.0 2.0 4.0]
// input 1: f32[3][1]+0 = [0.0 2.0 4.0], on the storage of input 0
// output 0: f32[3][1]+0 = [0.0 2.0 4.0], on the storage of input 0
// output 1: f32[3][1]+0 = [1.0 3.0 5.0]

// == part-later
// error: the storage of input x and input y must be one: the program was specialised for inputs that share it
