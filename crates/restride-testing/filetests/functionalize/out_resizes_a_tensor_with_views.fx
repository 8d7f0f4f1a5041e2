// out= resizes a tensor that a view was made of: the view stays on the old front of the memory.
// run: functionalize, run
graph(%x: f32[4], %y: f32[4]) {
  %e: f32[4] = aten.mul.Tensor(%x, 3)
  %v: f32[2]+1 = aten.slice.Tensor(%e, 0, 1, 3)
  %z: f32[0] = aten.resize_.default(%e, [0])
  %r: f32[4] = aten.add.out(%x, %y, out=%e)
  return %v, %e
}

// == functionalize
// stage: functional
// output 0: user as view f32[2]+1 of base 2
// output 1: user as view f32[4] of base 2
// output 2: base
//
// graph(%x: f32[4], %y: f32[4]) {
//   %r: f32[4] = aten.add.Tensor(%x, %y)
//   %v: f32[2]+1 = aten.slice.Tensor(%r, 0, 1, 3)
//   return %v, %r, %r
// }

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// input 1: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[2][1]+1 = [2.0 4.0]
// output 1: f32[4][1]+0 = [0.0 2.0 4.0 6.0], on the storage of output 0
