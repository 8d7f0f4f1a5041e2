// Outputs on one fresh storage keep sharing it.
// run: functionalize, run
graph(%a: f32[4]) {
  %x: f32[4] = aten.mul.Tensor(%a, 2)
  %p: f32[2, 2] = aten.view.default(%x, [2, 2])
  %q: f32[2]+1 = aten.slice.Tensor(%x, 0, 1, 3)
  return %p, %q
}

// == functionalize
// stage: functional
// output 0: user as view f32[2, 2] of base 2
// output 1: user as view f32[2]+1 of base 2
// output 2: base
//
// graph(%a: f32[4]) {
//   %x: f32[4] = aten.mul.Tensor(%a, 2)
//   %p: f32[2, 2] = aten.view.default(%x, [2, 2])
//   %q: f32[2]+1 = aten.slice.Tensor(%x, 0, 1, 3)
//   return %p, %q, %x
// }

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[2, 2][2, 1]+0 = [0.0 2.0 4.0 6.0]
// output 1: f32[2][1]+1 = [2.0 4.0], on the storage of output 0
