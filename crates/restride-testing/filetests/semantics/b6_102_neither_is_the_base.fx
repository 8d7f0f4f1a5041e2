// Two inputs overlap and neither shows all: the merged memory is their storage.
// run: functionalize, run
// share: %x %y
graph(%x: f32[3], %y: f32[3]+2) {
  %a: f32[3] = aten.add_.Tensor(%x, 10)
  %b: f32[3]+2 = aten.mul_.Tensor(%y, 2)
  %s: f32[3] = aten.sub.Tensor(%x, %y)
  return %s
}

// == functionalize
// stage: functional
// input %storage_x_y: storage of %x, %y
// output 0: mutation of %storage_x_y
//
// graph(%x: f32[3], %y: f32[3]+2, %storage_x_y: f32[5]) {
//   %a: f32[3] = aten.slice.Tensor(%storage_x_y, 0, 0, 3)
//   %a_1: f32[3] = aten.add.Tensor(%a, 10)
//   %a_2: f32[5] = aten.slice_scatter.default(%storage_x_y, %a_1, 0, 0, 3)
//   %b: f32[3]+2 = aten.slice.Tensor(%a_2, 0, 2, 5)
//   %b_1: f32[3]+2 = aten.mul.Tensor(%b, 2)
//   %b_2: f32[5] = aten.slice_scatter.default(%a_2, %b_1, 0, 2, 5)
//   %s: f32[3] = aten.slice.Tensor(%b_2, 0, 0, 3)
//   %s_1: f32[3] = aten.sub.Tensor(%s, %b_1)
//   return %b_2, %s_1
// }

// == run
// input 0: f32[3][1]+0 = [10.0 11.0 24.0]
// input 1: f32[3][1]+2 = [24.0 6.0 8.0], on the storage of input 0
// output 0: f32[3][1]+0 = [-14.0 5.0 16.0]
