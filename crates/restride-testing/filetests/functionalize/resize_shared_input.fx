// One of two inputs on one storage is resized over the other and beyond.
// run: functionalize, run
// share: %x %y
graph(%x: f32[2], %y: f32[3]+1) {
  %r: f32[2, 3] = aten.resize_.default(%x, [2, 3])
  %w: f32[2, 3] = aten.fill_.Scalar(%x, 7)
  %z: f32[3]+1 = aten.add_.Tensor(%y, 1)
  return %x
}

// == functionalize
// stage: functional
// input %storage_x_y: storage of %x, %y
// output 0: mutation of %storage_x_y
// output 1: user as view f32[2, 3] of input %storage_x_y
// output 2: metadata of %x as view f32[2, 3] of input %storage_x_y
// output 3: metadata of %storage_x_y as view f32[6] of input %storage_x_y
//
// graph(%x: f32[2], %y: f32[3]+1, %storage_x_y: f32[6]) {
//   %w: f32[2, 3] = aten.reshape.default(%storage_x_y, [2, 3])
//   %w_1: f32[2, 3] = aten.fill.Scalar(%w, 7)
//   %w_2: f32[6] = aten.reshape.default(%w_1, [6])
//   %z: f32[3]+1 = aten.slice.Tensor(%w_2, 0, 1, 4)
//   %z_1: f32[3]+1 = aten.add.Tensor(%z, 1)
//   %z_2: f32[6] = aten.slice_scatter.default(%w_2, %z_1, 0, 1, 4)
//   %v: f32[2, 3] = aten.reshape.default(%z_2, [2, 3])
//   return %z_2, %v, None, None
// }

// == run
// input 0: f32[2, 3][3, 1]+0 = [7.0 8.0 8.0 8.0 7.0 7.0]
// input 1: f32[3][1]+1 = [8.0 8.0 8.0], on the storage of input 0
// output 0: f32[2, 3][3, 1]+0 = [7.0 8.0 8.0 8.0 7.0 7.0], on the storage of input 0
