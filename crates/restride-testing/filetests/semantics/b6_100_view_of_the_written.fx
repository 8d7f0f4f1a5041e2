// One of two inputs on one storage is written, and a view of it is returned.
// run: functionalize, run
// share: %x %y
graph(%y: f32[2]+1, %x: f32[4]) {
  %w: f32[4] = aten.mul_.Tensor(%x, 10)
  %v: f32[3]+1 = aten.slice.Tensor(%x, 0, 1, 4)
  %z: f32[2] = aten.add.Tensor(%y, 1)
  return %v, %z
}

// == functionalize
// stage: functional
// input %storage_y_x: storage of %y, %x
// output 0: mutation of %storage_y_x
// output 1: user as view f32[3]+1 of input %storage_y_x
//
// graph(%y: f32[2]+1, %x: f32[4], %storage_y_x: f32[4]) {
//   %w: f32[4] = aten.mul.Tensor(%storage_y_x, 10)
//   %z: f32[2]+1 = aten.slice.Tensor(%w, 0, 1, 3)
//   %z_1: f32[2] = aten.add.Tensor(%z, 1)
//   %v: f32[3]+1 = aten.slice.Tensor(%w, 0, 1, 4)
//   return %w, %v, %z_1
// }

// == run
// input 0: f32[2][1]+1 = [10.0 20.0]
// input 1: f32[4][1]+0 = [0.0 10.0 20.0 30.0], on the storage of input 0
// output 0: f32[3][1]+1 = [10.0 20.0 30.0], on the storage of input 0
// output 1: f32[2][1]+0 = [11.0 21.0]
