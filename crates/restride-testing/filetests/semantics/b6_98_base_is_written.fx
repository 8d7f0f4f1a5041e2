// Inputs on one storage: a write through one is seen by the other.
// run: functionalize, run
// share: %x %y
graph(%x: f32[4], %y: f32[2]+2) {
  %w: f32[4] = aten.mul_.Tensor(%x, 10)
  %s: f32[2] = aten.add.Tensor(%y, 1)
  return %s
}

// == functionalize
// stage: functional
// input %storage_x_y: storage of %x, %y
// output 0: mutation of %storage_x_y
//
// graph(%x: f32[4], %y: f32[2]+2, %storage_x_y: f32[4]) {
//   %w: f32[4] = aten.mul.Tensor(%storage_x_y, 10)
//   %s: f32[2]+2 = aten.slice.Tensor(%w, 0, 2, 4)
//   %s_1: f32[2] = aten.add.Tensor(%s, 1)
//   return %w, %s_1
// }

// == run
// input 0: f32[4][1]+0 = [0.0 10.0 20.0 30.0]
// input 1: f32[2][1]+2 = [20.0 30.0], on the storage of input 0
// output 0: f32[2][1]+0 = [21.0 31.0]
