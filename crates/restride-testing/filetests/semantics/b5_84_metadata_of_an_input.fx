// Only the sizes of an input change: nothing is computed, and the caller's tensor has the new ones.
// run: functionalize, run
graph(%x: f32[2, 3], %y: f32[1, 2]) {
  %t: f32[3, 2][1, 3] = aten.transpose_.default(%x, 0, 1)
  %s: f32[2] = aten.squeeze_.dim(%y, 0)
  %u: f32[2, 1] = aten.unsqueeze_.default(%y, 1)
  %v: f32[1, 3, 2][3, 1, 3] = aten.unsqueeze_.default(%x, 0)
  return %t
}

// == functionalize
// stage: functional
// output 0: user as view f32[1, 3, 2][3, 1, 3] of input %x
// output 1: metadata of %x as view f32[1, 3, 2][3, 1, 3] of input %x
// output 2: metadata of %y as view f32[2, 1] of input %y
//
// graph(%x: f32[2, 3], %y: f32[1, 2]) {
//   %v: f32[3, 2][1, 3] = aten.permute.default(%x, [1, 0])
//   %v_1: f32[1, 3, 2][3, 1, 3] = aten.reshape.default(%v, [1, 3, 2])
//   return %v_1, None, None
// }

// == run
// input 0: f32[1, 3, 2][3, 1, 3]+0 = [0.0 3.0 1.0 4.0 2.0 5.0]
// input 1: f32[2, 1][1, 1]+0 = [0.0 1.0]
// output 0: f32[1, 3, 2][3, 1, 3]+0 = [0.0 3.0 1.0 4.0 2.0 5.0], on the storage of input 0
