// One of two inputs on one storage is written, and a view of the other one is returned.
// run: functionalize, run
// share: %x %y
graph(%x: f32[4], %y: f32[2, 2]) {
  %w: f32[4] = aten.mul_.Tensor(%x, 10)
  %v: f32[2][2] = aten.select.int(%y, 1, 0)
  return %v
}

// == functionalize
// stage: functional
// input %storage_x_y: storage of %x, %y
// output 0: mutation of %storage_x_y
// output 1: user as view f32[2][2] of input %storage_x_y
//
// graph(%x: f32[4], %y: f32[2, 2], %storage_x_y: f32[4]) {
//   %w: f32[4] = aten.mul.Tensor(%storage_x_y, 10)
//   %v: f32[2][2] = aten.slice.Tensor(%w, 0, 0, 3, 2)
//   return %w, %v
// }

// == run
// input 0: f32[4][1]+0 = [0.0 10.0 20.0 30.0]
// input 1: f32[2, 2][2, 1]+0 = [0.0 10.0 20.0 30.0], on the storage of input 0
// output 0: f32[2][2]+0 = [0.0 20.0], on the storage of input 0
