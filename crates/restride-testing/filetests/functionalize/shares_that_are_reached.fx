// Inputs that meet in no cell are merged after all where a view of one reaches another.
// run: functionalize, run
// share: %a %b %c %d
graph(%a: f32[3], %b: f32[2]+4, %c: f32[2]+2, %d: f32[2]+7) {
  %w: f32[3] = aten.add_.Tensor(%a, 10)
  %v: f32[2]+4 = aten.mul_.Tensor(%b, 2)
  %s: f32[2] = aten.add.Tensor(%c, %d)
  %r: f32[2][3] = aten.as_strided.default(%d, [2], [3], 0)
  %z: f32[2][3] = aten.zero_.default(%r)
  return %c, %s
}

// == functionalize
// stage: functional
// input %storage_a_b_c_d: storage of %a, %b, %c, %d
// output 0: mutation of %storage_a_b_c_d
// output 1: user as view f32[2]+2 of input %storage_a_b_c_d
//
// graph(%a: f32[3], %b: f32[2]+4, %c: f32[2]+2, %d: f32[2]+7, %storage_a_b_c_d: f32[9]) {
//   %w: f32[3] = aten.slice.Tensor(%storage_a_b_c_d, 0, 0, 3)
//   %w_1: f32[3] = aten.add.Tensor(%w, 10)
//   %w_2: f32[9] = aten.slice_scatter.default(%storage_a_b_c_d, %w_1, 0, 0, 3)
//   %v: f32[2]+4 = aten.slice.Tensor(%w_2, 0, 4, 6)
//   %v_1: f32[2]+4 = aten.mul.Tensor(%v, 2)
//   %v_2: f32[9] = aten.slice_scatter.default(%w_2, %v_1, 0, 4, 6)
//   %s: f32[2]+2 = aten.slice.Tensor(%v_2, 0, 2, 4)
//   %s_1: f32[2]+7 = aten.slice.Tensor(%v_2, 0, 7, 9)
//   %s_2: f32[2] = aten.add.Tensor(%s, %s_1)
//   %z: f32[2][3] = aten.slice.Tensor(%v_2, 0, 0, 4, 3)
//   %z_1: f32[2][3] = aten.zero.default(%z)
//   %z_2: f32[9] = aten.slice_scatter.default(%v_2, %z_1, 0, 0, 4, 3)
//   %v_3: f32[2]+2 = aten.slice.Tensor(%z_2, 0, 2, 4)
//   return %z_2, %v_3, %s_2
// }

// == run
// input 0: f32[3][1]+0 = [0.0 11.0 12.0]
// input 1: f32[2][1]+4 = [8.0 10.0], on the storage of input 0
// input 2: f32[2][1]+2 = [12.0 0.0], on the storage of input 0
// input 3: f32[2][1]+7 = [7.0 8.0], on the storage of input 0
// output 0: f32[2][1]+2 = [12.0 0.0], on the storage of input 0
// output 1: f32[2][1]+0 = [19.0 11.0]
