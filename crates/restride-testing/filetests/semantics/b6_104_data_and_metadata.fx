// One of two inputs on one storage is written, the other one transposed in place.
// run: functionalize, run
// share: %x %y
graph(%x: f32[2, 2], %y: f32[2, 2]) {
  %t: f32[2, 2][1, 2] = aten.t_.default(%y)
  %r: f32[2] = aten.select.int(%x, 0, 0)
  %w: f32[2] = aten.add_.Tensor(%r, 10)
  %s: f32[2, 2] = aten.sub.Tensor(%x, %y)
  return %s
}

// == functionalize
// stage: functional
// input %storage_x_y: storage of %x, %y
// output 0: mutation of %storage_x_y
// output 2: metadata of %y as view f32[2, 2][1, 2] of input %storage_x_y
//
// graph(%x: f32[2, 2], %y: f32[2, 2], %storage_x_y: f32[4]) {
//   %r: f32[2] = aten.slice.Tensor(%storage_x_y, 0, 0, 2)
//   %w: f32[2] = aten.add.Tensor(%r, 10)
//   %w_1: f32[4] = aten.slice_scatter.default(%storage_x_y, %w, 0, 0, 2)
//   %s: f32[2, 2] = aten.reshape.default(%w_1, [2, 2])
//   %s_1: f32[2, 2][1, 2] = aten.as_strided.default(%w_1, [2, 2], [1, 2], 0)
//   %s_2: f32[2, 2] = aten.sub.Tensor(%s, %s_1)
//   return %w_1, %s_2, None
// }

// == run
// input 0: f32[2, 2][2, 1]+0 = [10.0 11.0 2.0 3.0]
// input 1: f32[2, 2][1, 2]+0 = [10.0 2.0 11.0 3.0], on the storage of input 0
// output 0: f32[2, 2][2, 1]+0 = [0.0 9.0 -9.0 0.0]
