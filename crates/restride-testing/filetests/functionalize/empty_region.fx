// A write into no elements changes nothing.
// run: functionalize, run
graph(%x: f32[3]) {
  %e: f32[0]+2 = aten.slice.Tensor(%x, 0, 2, 1)
  %w: f32[0]+2 = aten.fill_.Scalar(%e, 1)
  return %x
}

// == functionalize
// output 0: user as view f32[3] of input %x
//
// graph(%x: f32[3]) {
//   return %x
// }

// == run
// input 0: f32[3][1]+0 = [0.0 1.0 2.0]
// output 0: f32[3][1]+0 = [0.0 1.0 2.0], on the storage of input 0
