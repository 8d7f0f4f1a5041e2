// An intermediate and views of it, in any order and more than once.
// run: functionalize, run
graph(%a: f32[2, 2]) {
  %x: f32[2, 2] = aten.mul.Tensor(%a, 2)
  %v: f32[4] = aten.view.default(%x, [4])
  %d: f32[2, 2] = aten.detach.default(%x)
  %t: f32[2, 2][1, 2] = aten.t.default(%d)
  return %v, %x, %t, %x
}

// == functionalize
// stage: functional
// output 0: user as view f32[4] of base 4
// output 1: user as view f32[2, 2] of base 4
// output 2: user as view f32[2, 2][1, 2] of base 4
// output 3: user as view f32[2, 2] of base 4
// output 4: base
//
// graph(%a: f32[2, 2]) {
//   %x: f32[2, 2] = aten.mul.Tensor(%a, 2)
//   %v: f32[4] = aten.view.default(%x, [4])
//   %d: f32[2, 2] = aten.detach.default(%x)
//   %t: f32[2, 2][1, 2] = aten.t.default(%d)
//   return %v, %x, %t, %x, %x
// }

// == run
// input 0: f32[2, 2][2, 1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[4][1]+0 = [0.0 2.0 4.0 6.0]
// output 1: f32[2, 2][2, 1]+0 = [0.0 2.0 4.0 6.0], on the storage of output 0
// output 2: f32[2, 2][1, 2]+0 = [0.0 4.0 2.0 6.0], on the storage of output 0
// output 3: f32[2, 2][2, 1]+0 = [0.0 2.0 4.0 6.0], on the storage of output 0
