// A comparison in place is converted back to the element type of its target.
// run: functionalize, run
graph(%x: f32[3]) {
  %w: f32[3] = aten.ge_.Scalar(%x, 1)
  return %w
}

// == functionalize
// output 0: mutation of %x
// output 1: user as view f32[3] of input %x
//
// graph(%x: f32[3]) {
//   %w: bool[3] = aten.ge.Scalar(%x, 1)
//   %w_1: f32[3] = aten._to_copy.default(%w, dtype=f32)
//   return %w_1, %w_1
// }

// == run
// input 0: f32[3][1]+0 = [0.0 1.0 1.0]
// output 0: f32[3][1]+0 = [0.0 1.0 1.0], on the storage of input 0
