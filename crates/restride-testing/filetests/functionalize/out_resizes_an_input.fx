// out= resizes an input.
// run: functionalize, run
// share: %o
graph(%x: f32[2], %y: f32[2], %o: f32[0]) {
  %r: f32[2] = aten.add.out(%x, %y, out=%o)
  return %r
}

// == functionalize
// input %storage_o: storage of %o
// output 0: mutation of %storage_o
// output 1: user as view f32[2] of input %storage_o
// output 2: metadata of %o as view f32[2] of input %storage_o
// output 3: metadata of %storage_o as view f32[2] of input %storage_o
//
// graph(%x: f32[2], %y: f32[2], %o: f32[0], %storage_o: f32[2]) {
//   %r: f32[2] = aten.add.Tensor(%x, %y)
//   return %r, %r, None, None
// }

// == run
// input 0: f32[2][1]+0 = [0.0 1.0]
// input 1: f32[2][1]+0 = [0.0 1.0]
// input 2: f32[2][1]+0 = [0.0 2.0]
// output 0: f32[2][1]+0 = [0.0 2.0], on the storage of input 2
