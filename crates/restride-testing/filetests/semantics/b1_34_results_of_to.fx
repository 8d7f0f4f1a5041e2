// to() that has nothing to do gives its argument, and one that converts gives fresh memory: both may be written.
// run: functionalize, run
graph(%x: f32[2], %y: i64[2]) {
  %t: f32[2] = aten.to.dtype(%x, f32)
  %w: f32[2] = aten.add_.Tensor(%t, 1)
  %u: f32[2] = aten.to.dtype(%y, f32)
  %v: f32[2] = aten.mul_.Tensor(%u, 3)
  %c: f32[2] = aten.contiguous.default(%x)
  %z: f32[2] = aten.mul_.Tensor(%c, 2)
  return %t, %v
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: user as view f32[2] of input %x
//
// graph(%x: f32[2], %y: i64[2]) {
//   %w: f32[2] = aten.add.Tensor(%x, 1)
//   %u: f32[2] = aten.to.dtype(%y, f32)
//   %v: f32[2] = aten.mul.Tensor(%u, 3)
//   %z: f32[2] = aten.mul.Tensor(%w, 2)
//   return %z, %z, %v
// }

// == run
// input 0: f32[2][1]+0 = [2.0 4.0]
// input 1: i64[2][1]+0 = [0 1]
// output 0: f32[2][1]+0 = [2.0 4.0], on the storage of input 0
// output 1: f32[2][1]+0 = [0.0 3.0]
