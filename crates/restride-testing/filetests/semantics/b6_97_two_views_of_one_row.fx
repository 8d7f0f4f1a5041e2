// Two inputs show the same row of a storage, and one is written: the other has it.
// run: functionalize, run
// share: %x %y
graph(%x: f32[2]+2, %y: f32[1, 2]+2) {
  %w: f32[2]+2 = aten.add_.Tensor(%x, 10)
  %z: f32[1, 2] = aten.mul.Tensor(%y, 2)
  return %z
}

// == functionalize
// stage: functional
// input %storage_x_y: storage of %x, %y
// output 0: mutation of %storage_x_y
//
// graph(%x: f32[2]+2, %y: f32[1, 2]+2, %storage_x_y: f32[4]) {
//   %w: f32[2]+2 = aten.slice.Tensor(%storage_x_y, 0, 2, 4)
//   %w_1: f32[2]+2 = aten.add.Tensor(%w, 10)
//   %w_2: f32[4] = aten.slice_scatter.default(%storage_x_y, %w_1, 0, 2, 4)
//   %z: f32[2]+2 = aten.slice.Tensor(%w_2, 0, 2, 4)
//   %z_1: f32[1, 2]+2 = aten.reshape.default(%z, [1, 2])
//   %z_2: f32[1, 2] = aten.mul.Tensor(%z_1, 2)
//   return %w_2, %z_2
// }

// == run
// input 0: f32[2][1]+2 = [12.0 13.0]
// input 1: f32[1, 2][2, 1]+2 = [12.0 13.0], on the storage of input 0
// output 0: f32[1, 2][2, 1]+0 = [24.0 26.0]
