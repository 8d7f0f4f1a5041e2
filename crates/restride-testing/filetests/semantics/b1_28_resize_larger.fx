// A tensor of its own is resized to more, filled, and written through a view.
// run: functionalize, run
graph(%a: f32[2]) {
  %x: f32[2] = aten.neg.default(%a)
  %r: f32[3, 2] = aten.resize_.default(%x, [3, 2])
  %f: f32[3, 2] = aten.fill_.Scalar(%x, 5)
  %v: f32[2]+4 = aten.select.int(%x, 0, 2)
  %w: f32[2]+4 = aten.add_.Tensor(%v, 1)
  return %x, %v
}

// == functionalize
// stage: functional
// output 0: user as view f32[3, 2] of base 2
// output 1: user as view f32[2]+4 of base 2
// output 2: base
//
// graph(%a: f32[2]) {
//   %x: f32[2] = aten.neg.default(%a)
//   %r: f32[6] = aten.constant_pad_nd.default(%x, [0, 4])
//   %r_1: f32[3, 2] = aten.reshape.default(%r, [3, 2])
//   %f: f32[3, 2] = aten.fill.Scalar(%r_1, 5)
//   %v: f32[2]+4 = aten.select.int(%f, 0, 2)
//   %w: f32[2]+4 = aten.add.Tensor(%v, 1)
//   %w_1: f32[3, 2] = aten.select_scatter.default(%f, %w, 0, 2)
//   return %w_1, %w, %w_1
// }

// == run
// input 0: f32[2][1]+0 = [0.0 1.0]
// output 0: f32[3, 2][2, 1]+0 = [5.0 5.0 5.0 5.0 6.0 6.0]
// output 1: f32[2][1]+4 = [6.0 6.0], on the storage of output 0
