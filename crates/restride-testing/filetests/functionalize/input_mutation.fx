// A write into an input is declared, and an output that is the input stays one with it.
// run: functionalize, run
graph(%x: f32[3]) {
  %w: f32[3] = aten.mul_.Tensor(%x, 2)
  %v: f32[2]+1 = aten.slice.Tensor(%x, 0, 1)
  return %w, %v
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: user as view f32[3] of input %x
// output 2: user as view f32[2]+1 of input %x
//
// graph(%x: f32[3]) {
//   %w: f32[3] = aten.mul.Tensor(%x, 2)
//   %v: f32[2]+1 = aten.slice.Tensor(%w, 0, 1)
//   return %w, %w, %v
// }

// == run
// input 0: f32[3][1]+0 = [0.0 2.0 4.0]
// output 0: f32[3][1]+0 = [0.0 2.0 4.0], on the storage of input 0
// output 1: f32[2][1]+1 = [2.0 4.0], on the storage of input 0
