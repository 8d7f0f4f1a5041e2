// A tensor whose memory is not row-major grows: the memory stays in its order.
// run: functionalize, run
graph(%a: f32[2, 3][1, 2]) {
  %x: f32[2, 3][1, 2] = aten.neg.default(%a)
  %r: f32[7] = aten.resize_.default(%x, [7])
  %f: f32[1]+6 = aten.slice.Tensor(%x, 0, 6, 7)
  %g: f32[1]+6 = aten.fill_.Scalar(%f, 9)
  return %x
}

// == functionalize
// stage: functional
//
// graph(%a: f32[2, 3][1, 2]) {
//   %x: f32[2, 3][1, 2] = aten.neg.default(%a)
//   %r: f32[6] = aten.as_strided.default(%x, [6], [1], 0)
//   %r_1: f32[7] = aten.constant_pad_nd.default(%r, [0, 1])
//   %f: f32[1]+6 = aten.slice.Tensor(%r_1, 0, 6, 7)
//   %g: f32[1]+6 = aten.fill.Scalar(%f, 9)
//   %g_1: f32[7] = aten.slice_scatter.default(%r_1, %g, 0, 6, 7)
//   return %g_1
// }

// == run
// input 0: f32[2, 3][1, 2]+0 = [0.0 2.0 4.0 1.0 3.0 5.0]
// output 0: f32[7][1]+0 = [-0.0 -1.0 -2.0 -3.0 -4.0 -5.0 9.0]
