// Two inputs, one a detached view of the other, both written.
// run: functionalize, run
// share: %x %y
graph(%x: f32[2, 2], %y: f32[2][2]+1) {
  %d: f32[2, 2] = aten.detach.default(%x)
  %a: f32[2, 2] = aten.add_.Tensor(%d, 10)
  %b: f32[2][2]+1 = aten.mul_.Tensor(%y, 2) !no_grad
  %s: f32[] = aten.sum.default(%x)
  return %d, %s
}

// == functionalize
// stage: functional
// input %storage_x_y: storage of %x, %y
// output 0: mutation of %storage_x_y
// output 1: user as view f32[2, 2] of input %storage_x_y
//
// graph(%x: f32[2, 2], %y: f32[2][2]+1, %storage_x_y: f32[4]) {
//   %a: f32[2, 2] = aten.reshape.default(%storage_x_y, [2, 2])
//   %d: f32[2, 2] = aten.detach.default(%a)
//   %a_1: f32[2, 2] = aten.add.Tensor(%d, 10)
//   %a_3: f32[4] = aten.reshape.default(%a_1, [4])
//   %b: f32[4] = restride.with_history.default(%a_3, %storage_x_y)
//   %b_1: f32[2][2]+1 = aten.slice.Tensor(%b, 0, 1, 4, 2)
//   %b_2: f32[2][2]+1 = aten.mul.Tensor(%b_1, 2) !no_grad
//   %b_3: f32[4] = aten.slice_scatter.default(%a_3, %b_2, 0, 1, 4, 2) !no_grad
//   %s: f32[4] = restride.with_history.default(%b_3, %b)
//   %s_1: f32[2, 2] = aten.reshape.default(%s, [2, 2])
//   %s_2: f32[] = aten.sum.default(%s_1)
//   %v: f32[2, 2] = aten.reshape.default(%b_3, [2, 2])
//   return %b_3, %v, %s_2
// }

// == run
// input 0: f32[2, 2][2, 1]+0 = [10.0 22.0 12.0 26.0]
// input 1: f32[2][2]+1 = [22.0 26.0], on the storage of input 0
// output 0: f32[2, 2][2, 1]+0 = [10.0 22.0 12.0 26.0], on the storage of input 0
// output 1: f32[][]+0 = [70.0]
