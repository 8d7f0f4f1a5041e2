// One storage given as two tensors on the same cells, each transposed in place: each tensor has its own sizes.
// run: functionalize, run
// share: %x %y
graph(%x: f32[2, 3], %y: f32[2, 3]) {
  %t: f32[3, 2][1, 3] = aten.t_.default(%x)
  %u: f32[1, 2, 3] = aten.unsqueeze_.default(%y, 0)
  %r: f32[2][3] = aten.select.int(%x, 0, 0)
  %w: f32[2][3] = aten.add_.Tensor(%r, 10)
  %s: f32[1, 2, 3] = aten.mul.Tensor(%y, 2)
  return %s
}

// == functionalize
// stage: functional
// input %storage_x_y: storage of %x, %y
// output 0: mutation of %storage_x_y
// output 2: metadata of %x as view f32[3, 2][1, 3] of input %storage_x_y
// output 3: metadata of %y as view f32[1, 2, 3] of input %storage_x_y
//
// graph(%x: f32[2, 3], %y: f32[2, 3], %storage_x_y: f32[6]) {
//   %r: f32[2][3] = aten.slice.Tensor(%storage_x_y, 0, 0, 4, 3)
//   %w: f32[2][3] = aten.add.Tensor(%r, 10)
//   %w_1: f32[6] = aten.slice_scatter.default(%storage_x_y, %w, 0, 0, 4, 3)
//   %s: f32[1, 2, 3] = aten.reshape.default(%w_1, [1, 2, 3])
//   %s_1: f32[1, 2, 3] = aten.mul.Tensor(%s, 2)
//   return %w_1, %s_1, None, None
// }

// == run
// input 0: f32[3, 2][1, 3]+0 = [10.0 13.0 1.0 4.0 2.0 5.0]
// input 1: f32[1, 2, 3][6, 3, 1]+0 = [10.0 1.0 2.0 13.0 4.0 5.0], on the storage of input 0
// output 0: f32[1, 2, 3][6, 3, 1]+0 = [20.0 2.0 4.0 26.0 8.0 10.0]
