// Two inputs that meet, one of them written, and a third one beside them on the same storage, which is written as well.
// run: functionalize, run
// share: %x %y %z
graph(%x: f32[2], %y: f32[2]+1, %z: f32[2]+3) {
  %a: f32[2] = aten.add_.Scalar(%x, 1)
  %b: f32[2]+3 = aten.mul_.Tensor(%z, %y)
  return %b
}

// == functionalize
// stage: functional
// input %storage_x_y_z: storage of %x, %y, %z
// output 0: mutation of %storage_x_y_z
// output 1: user as view f32[2]+3 of input %storage_x_y_z
//
// graph(%x: f32[2], %y: f32[2]+1, %z: f32[2]+3, %storage_x_y_z: f32[5]) {
//   %a: f32[2] = aten.slice.Tensor(%storage_x_y_z, 0, 0, 2)
//   %a_1: f32[2] = aten.add.Scalar(%a, 1)
//   %a_2: f32[5] = aten.slice_scatter.default(%storage_x_y_z, %a_1, 0, 0, 2)
//   %b: f32[2]+3 = aten.slice.Tensor(%a_2, 0, 3, 5)
//   %b_1: f32[2]+1 = aten.slice.Tensor(%a_2, 0, 1, 3)
//   %b_2: f32[2]+3 = aten.mul.Tensor(%b, %b_1)
//   %b_3: f32[5] = aten.slice_scatter.default(%a_2, %b_2, 0, 3, 5)
//   return %b_3, %b_2
// }

// == run
// input 0: f32[2][1]+0 = [1.0 2.0]
// input 1: f32[2][1]+1 = [2.0 2.0], on the storage of input 0
// input 2: f32[2][1]+3 = [6.0 8.0], on the storage of input 0
// output 0: f32[2][1]+3 = [6.0 8.0], on the storage of input 0
