// Resized to less, to more, and again through a view: all stay on the one memory that grows.
// run: functionalize, run
graph(%a: f32[3]) {
  %x: f32[3] = aten.neg.default(%a)
  %v: f32[2]+1 = aten.slice.Tensor(%x, 0, 1, 3)
  %r: f32[2] = aten.resize_.default(%x, [2])
  %s: f32[5] = aten.resize_.default(%x, [5])
  %z: f32[5] = aten.fill_.Scalar(%x, 3)
  %q: f32[2, 3]+1 = aten.resize_.default(%v, [2, 3])
  %y: f32[2, 3]+1 = aten.zero_.default(%v)
  %w: f32[5] = aten.add_.Tensor(%x, 1)
  return %x, %v
}

// == functionalize
// stage: functional
// output 0: user as view f32[5] of base 2
// output 1: user as view f32[2, 3]+1 of base 2
// output 2: base
//
// graph(%a: f32[3]) {
//   %x: f32[3] = aten.neg.default(%a)
//   %s: f32[5] = aten.constant_pad_nd.default(%x, [0, 2])
//   %z: f32[5] = aten.fill.Scalar(%s, 3)
//   %q: f32[7] = aten.constant_pad_nd.default(%z, [0, 2])
//   %y: f32[2, 3]+1 = aten.as_strided.default(%q, [2, 3], [3, 1], 1)
//   %y_1: f32[2, 3]+1 = aten.zero.default(%y)
//   %y_2: f32[7] = aten.as_strided_scatter.default(%q, %y_1, [2, 3], [3, 1], 1)
//   %w: f32[5] = aten.slice.Tensor(%y_2, 0, 0, 5)
//   %w_1: f32[5] = aten.add.Tensor(%w, 1)
//   %w_2: f32[7] = aten.slice_scatter.default(%y_2, %w_1, 0, 0, 5)
//   %v: f32[2, 3]+1 = aten.as_strided.default(%w_2, [2, 3], [3, 1], 1)
//   return %w_1, %v, %w_2
// }

// == run
// input 0: f32[3][1]+0 = [0.0 1.0 2.0]
// output 0: f32[5][1]+0 = [4.0 1.0 1.0 1.0 1.0]
// output 1: f32[2, 3][3, 1]+1 = [1.0 1.0 1.0 1.0 0.0 0.0], on the storage of output 0
