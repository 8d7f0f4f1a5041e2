// A view that is resized to less shows the front of what it showed; writes through views of it reach the base.
// run: functionalize, run
graph(%a: f32[8]) {
  %x: f32[8] = aten.neg.default(%a)
  %v: f32[7]+1 = aten.slice.Tensor(%x, 0, 1, 8)
  %r: f32[2, 2]+1 = aten.resize_.default(%v, [2, 2])
  %s: f32[2][2]+2 = aten.select.int(%v, 1, 1)
  %w: f32[2][2]+2 = aten.fill_.Scalar(%s, 9)
  return %v, %x
}

// == functionalize
// stage: functional
// output 0: user as view f32[2, 2]+1 of base 2
// output 1: user as view f32[8] of base 2
// output 2: base
//
// graph(%a: f32[8]) {
//   %x: f32[8] = aten.neg.default(%a)
//   %s: f32[2][2]+2 = aten.slice.Tensor(%x, 0, 2, 5, 2)
//   %w: f32[2][2]+2 = aten.fill.Scalar(%s, 9)
//   %w_1: f32[8] = aten.slice_scatter.default(%x, %w, 0, 2, 5, 2)
//   %v: f32[2, 2]+1 = aten.as_strided.default(%w_1, [2, 2], [2, 1], 1)
//   return %v, %w_1, %w_1
// }

// == run
// input 0: f32[8][1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0]
// output 0: f32[2, 2][2, 1]+1 = [-1.0 9.0 -3.0 9.0]
// output 1: f32[8][1]+0 = [-0.0 -1.0 9.0 -3.0 9.0 -5.0 -6.0 -7.0], on the storage of output 0
