// Inputs on one storage that no node writes: outputs on it share it.
// run: functionalize, run
// share: %x %y
graph(%x: f32[2, 3], %y: f32[3]+1, %k: f32[2]) {
  %n: f32[3] = aten.neg.default(%y)
  %v1: f32[2] = aten.mul.Scalar_out(%k, 3, out=%n)
  %v2: f32[2, 3] = aten.squeeze_.default(%x)
  %v3: f32[2, 3] = aten.set_.source_Tensor(%n, %x)
  %s: f32[] = aten.sum.default(%x)
  return %s, %n, %y, %x
}

// == functionalize
// output 1: user as view f32[2, 3] of input %x
// output 2: user as view f32[3]+1 of input %y
// output 3: user as view f32[2, 3] of input %x
// output 4: metadata of %x as view f32[2, 3] of input %x
//
// graph(%x: f32[2, 3], %y: f32[3]+1, %k: f32[2]) {
//   %s: f32[] = aten.sum.default(%x)
//   return %s, %x, %y, %x, None
// }

// == run
// input 0: f32[2, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// input 1: f32[3][1]+1 = [1.0 2.0 3.0], on the storage of input 0
// input 2: f32[2][1]+0 = [0.0 1.0]
// output 0: f32[][]+0 = [15.0]
// output 1: f32[2, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0], on the storage of input 0
// output 2: f32[3][1]+1 = [1.0 2.0 3.0], on the storage of input 0
// output 3: f32[2, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0], on the storage of input 0
