// A written input is returned, twice: all three stay one tensor.
// run: functionalize, run
graph(%x: f32[3]) {
  %w: f32[3] = aten.mul_.Tensor(%x, 2)
  return %w, %x
}

// == functionalize
// output 0: mutation of %x
// output 1: user as view f32[3] of input %x
// output 2: user as view f32[3] of input %x
//
// graph(%x: f32[3]) {
//   %w: f32[3] = aten.mul.Tensor(%x, 2)
//   return %w, %w, %w
// }

// == run
// input 0: f32[3][1]+0 = [0.0 2.0 4.0]
// output 0: f32[3][1]+0 = [0.0 2.0 4.0], on the storage of input 0
// output 1: f32[3][1]+0 = [0.0 2.0 4.0], on the storage of input 0
