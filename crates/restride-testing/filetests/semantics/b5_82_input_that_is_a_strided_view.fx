// A written input that is every other cell of its storage: the cells between are untouched.
// run: functionalize, run
graph(%x: f32[3][2]) {
  %w: f32[3][2] = aten.add_.Tensor(%x, 10)
  %v: f32[2][2]+2 = aten.slice.Tensor(%x, 0, 1, 3)
  %z: f32[2][2]+2 = aten.neg_.default(%v)
  return %z
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: user as view f32[2][2]+2 of input %x
//
// graph(%x: f32[3][2]) {
//   %w: f32[3][2] = aten.add.Tensor(%x, 10)
//   %v: f32[2][2]+2 = aten.slice.Tensor(%w, 0, 1, 3)
//   %z: f32[2][2]+2 = aten.neg.default(%v)
//   %z_1: f32[3][2] = aten.slice_scatter.default(%w, %z, 0, 1, 3)
//   return %z_1, %z
// }

// == run
// input 0: f32[3][2]+0 = [10.0 -12.0 -14.0]
// output 0: f32[2][2]+2 = [-12.0 -14.0], on the storage of input 0
