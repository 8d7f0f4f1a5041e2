// An out= argument takes the result.
// run: functionalize, run
graph(%x: f32[3], %y: f32[3], %o: f32[3]) {
  %r: f32[3] = aten.add.out(%x, %y, out=%o)
  return %r
}

// == functionalize
// output 0: mutation of %o
// output 1: user as view f32[3] of input %o
//
// graph(%x: f32[3], %y: f32[3], %o: f32[3]) {
//   %r: f32[3] = aten.add.Tensor(%x, %y)
//   return %r, %r
// }

// == run
// input 0: f32[3][1]+0 = [0.0 1.0 2.0]
// input 1: f32[3][1]+0 = [0.0 1.0 2.0]
// input 2: f32[3][1]+0 = [0.0 2.0 4.0]
// output 0: f32[3][1]+0 = [0.0 2.0 4.0], on the storage of input 2
