// One of two inputs on one storage is transposed in place: nothing is written, so nothing is merged.
// run: functionalize, run
// share: %x %y
graph(%x: f32[2, 2], %y: f32[4]) {
  %t: f32[2, 2][1, 2] = aten.t_.default(%x)
  %z: f32[4] = aten.mul.Tensor(%y, 2)
  %u: f32[2, 2][1, 2] = aten.add.Tensor(%x, 1)
  return %z, %u
}

// == functionalize
// stage: functional
// output 2: metadata of %x as view f32[2, 2][1, 2] of input %x
//
// graph(%x: f32[2, 2], %y: f32[4]) {
//   %z: f32[4] = aten.mul.Tensor(%y, 2)
//   %u: f32[2, 2][1, 2] = aten.permute.default(%x, [1, 0])
//   %u_1: f32[2, 2][1, 2] = aten.add.Tensor(%u, 1)
//   return %z, %u_1, None
// }

// == run
// input 0: f32[2, 2][1, 2]+0 = [0.0 2.0 1.0 3.0]
// input 1: f32[4][1]+0 = [0.0 1.0 2.0 3.0], on the storage of input 0
// output 0: f32[4][1]+0 = [0.0 2.0 4.0 6.0]
// output 1: f32[2, 2][1, 2]+0 = [1.0 3.0 2.0 4.0]
