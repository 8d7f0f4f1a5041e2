// out= resizes a view in the middle of its memory: it then shows its neighbours' memory too.
// run: functionalize, run
graph(%a: f32[6], %b: f32[2, 2]) {
  %x: f32[6] = aten.neg.default(%a)
  %v: f32[2]+1 = aten.slice.Tensor(%x, 0, 1, 3)
  %r: f32[2, 2]+1 = aten.mul.out(%b, %b, out=%v)
  %p: f32[5] = aten.slice.Tensor(%x, 0, 0, 5)
  return %x, %v, %p
}

// == functionalize
// stage: functional
// output 0: user as view f32[6] of base 3
// output 1: user as view f32[2, 2]+1 of base 3
// output 2: user as view f32[5] of base 3
// output 3: base
//
// graph(%a: f32[6], %b: f32[2, 2]) {
//   %x: f32[6] = aten.neg.default(%a)
//   %r: f32[2, 2] = aten.mul.Tensor(%b, %b)
//   %r_1: f32[6] = aten.as_strided_scatter.default(%x, %r, [2, 2], [2, 1], 1)
//   %p: f32[5] = aten.slice.Tensor(%r_1, 0, 0, 5)
//   return %r_1, %r, %p, %r_1
// }

// == run
// input 0: f32[6][1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// input 1: f32[2, 2][2, 1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[6][1]+0 = [-0.0 0.0 1.0 4.0 9.0 -5.0]
// output 1: f32[2, 2][2, 1]+1 = [0.0 1.0 4.0 9.0], on the storage of output 0
// output 2: f32[5][1]+0 = [-0.0 0.0 1.0 4.0 9.0], on the storage of output 0
