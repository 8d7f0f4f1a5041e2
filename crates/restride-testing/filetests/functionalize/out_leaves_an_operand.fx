// `cat` looks for shared memory after it resized out=; a copied result shares none.
// run: functionalize, run
graph(%x: f32[6]) {
  %a: f32[2]+4 = aten.slice.Tensor(%x, 0, 4, 6)
  %o: f32[5] = aten.slice.Tensor(%x, 0, 0, 5)
  %c: f32[4] = aten.cat.out([%a, %a], out=%o)
  %b: f32[2]+1 = aten.slice.Tensor(%x, 0, 1, 3)
  %d: f32[2]+2 = aten.slice.Tensor(%x, 0, 2, 4)
  %r: f32[2]+2 = aten.relu.out(%b, out=%d)
  return %c, %r
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: user as view f32[4] of input %x
// output 2: user as view f32[2]+2 of input %x
//
// graph(%x: f32[6]) {
//   %a: f32[2]+4 = aten.slice.Tensor(%x, 0, 4, 6)
//   %c: f32[4] = aten.cat.default([%a, %a])
//   %c_1: f32[6] = aten.slice_scatter.default(%x, %c, 0, 0, 4)
//   %b: f32[2]+1 = aten.slice.Tensor(%c_1, 0, 1, 3)
//   %r: f32[2]+2 = aten.relu.default(%b)
//   %r_1: f32[6] = aten.slice_scatter.default(%c_1, %r, 0, 2, 4)
//   %v: f32[4] = aten.slice.Tensor(%r_1, 0, 0, 4)
//   return %r_1, %v, %r
// }

// == run
// input 0: f32[6][1]+0 = [4.0 5.0 5.0 4.0 4.0 5.0]
// output 0: f32[4][1]+0 = [4.0 5.0 5.0 4.0], on the storage of input 0
// output 1: f32[2][1]+2 = [5.0 4.0], on the storage of input 0
