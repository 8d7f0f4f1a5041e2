// Two inputs show one storage in different element types, and one is written.
// run: functionalize, run
// share: %x %y
graph(%x: i32[4], %y: i16[2, 2][4, 2]) {
  %w: i32[4] = aten.add_.Tensor(%x, 65536)
  %z: i16[2, 2] = aten.mul.Tensor(%y, 2)
  %v: i16[2, 2][4, 2] = aten.fill_.Scalar(%y, 3)
  return %z, %x
}

// == functionalize
// stage: functional
// input %storage_x_y: storage of %x, %y
// output 0: mutation of %storage_x_y
// output 2: user as view i32[4] of input %storage_x_y
//
// graph(%x: i32[4], %y: i16[2, 2][4, 2], %storage_x_y: u8[16]) {
//   %w: i32[4] = aten.view.dtype(%storage_x_y, i32)
//   %w_1: i32[4] = aten.add.Tensor(%w, 65536)
//   %w_2: u8[16] = aten.view.dtype(%w_1, u8)
//   %z: i16[8] = aten.view.dtype(%w_2, i16)
//   %z_1: i16[2, 2][4, 2] = aten.as_strided.default(%z, [2, 2], [4, 2], 0)
//   %z_2: i16[2, 2] = aten.mul.Tensor(%z_1, 2)
//   %v: i16[2, 2][4, 2] = aten.fill.Scalar(%z_1, 3)
//   %v_1: i16[8] = aten.view.dtype(%w_2, i16)
//   %v_2: i16[8] = aten.as_strided_scatter.default(%v_1, %v, [2, 2], [4, 2], 0)
//   %v_3: u8[16] = aten.view.dtype(%v_2, u8)
//   %v_4: i32[4] = aten.view.dtype(%v_3, i32)
//   return %v_3, %z_2, %v_4
// }

// == run
// input 0: i32[4][1]+0 = [65539 65539 65539 65539]
// input 1: i16[2, 2][4, 2]+0 = [3 3 3 3], on the storage of input 0
// output 0: i16[2, 2][2, 1]+0 = [0 2 4 6]
// output 1: i32[4][1]+0 = [65539 65539 65539 65539], on the storage of input 0
