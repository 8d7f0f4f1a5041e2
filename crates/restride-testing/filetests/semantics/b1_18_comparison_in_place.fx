// A comparison in place is converted back to the element type of its target, through a view.
// run: functionalize, run
graph(%a: f32[4]) {
  %x: f32[4] = aten.sub.Tensor(%a, 2)
  %v: f32[3]+1 = aten.slice.Tensor(%x, 0, 1, 4)
  %w: f32[3]+1 = aten.ge_.Scalar(%v, 0)
  return %x, %w
}

// == functionalize
// stage: functional
// output 0: user as view f32[4] of base 2
// output 1: user as view f32[3]+1 of base 2
// output 2: base
//
// graph(%a: f32[4]) {
//   %x: f32[4] = aten.sub.Tensor(%a, 2)
//   %v: f32[3]+1 = aten.slice.Tensor(%x, 0, 1, 4)
//   %w: bool[3]+1 = aten.ge.Scalar(%v, 0)
//   %w_1: f32[3]+1 = aten._to_copy.default(%w, dtype=f32)
//   %w_2: f32[4] = aten.slice_scatter.default(%x, %w_1, 0, 1, 4)
//   return %w_2, %w_1, %w_2
// }

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[4][1]+0 = [-2.0 0.0 1.0 1.0]
// output 1: f32[3][1]+1 = [0.0 1.0 1.0], on the storage of output 0
