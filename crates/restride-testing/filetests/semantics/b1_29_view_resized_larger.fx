// A view that is resized to more makes the memory under its base grow: both stay on it.
// run: functionalize, run
graph(%a: f32[4]) {
  %x: f32[4] = aten.neg.default(%a)
  %p: f32[2]+1 = aten.slice.Tensor(%x, 0, 1, 3)
  %v: f32[2]+2 = aten.slice.Tensor(%x, 0, 2, 4)
  %r: f32[2, 2]+2 = aten.resize_.default(%v, [2, 2])
  %f: f32[2, 2]+2 = aten.fill_.Scalar(%v, 5)
  %w: f32[2]+1 = aten.add_.Tensor(%p, 10)
  return %x, %v
}

// == functionalize
// stage: functional
// output 0: user as view f32[4] of base 2
// output 1: user as view f32[2, 2]+2 of base 2
// output 2: base
//
// graph(%a: f32[4]) {
//   %x: f32[4] = aten.neg.default(%a)
//   %r: f32[6] = aten.constant_pad_nd.default(%x, [0, 2])
//   %f: f32[2, 2]+2 = aten.as_strided.default(%r, [2, 2], [2, 1], 2)
//   %f_1: f32[2, 2]+2 = aten.fill.Scalar(%f, 5)
//   %f_2: f32[6] = aten.as_strided_scatter.default(%r, %f_1, [2, 2], [2, 1], 2)
//   %w: f32[2]+1 = aten.slice.Tensor(%f_2, 0, 1, 3)
//   %w_1: f32[2]+1 = aten.add.Tensor(%w, 10)
//   %w_2: f32[6] = aten.slice_scatter.default(%f_2, %w_1, 0, 1, 3)
//   %v: f32[4] = aten.slice.Tensor(%w_2, 0, 0, 4)
//   %v_1: f32[2, 2]+2 = aten.as_strided.default(%w_2, [2, 2], [2, 1], 2)
//   return %v, %v_1, %w_2
// }

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[4][1]+0 = [-0.0 9.0 15.0 5.0]
// output 1: f32[2, 2][2, 1]+2 = [15.0 5.0 5.0 5.0], on the storage of output 0
