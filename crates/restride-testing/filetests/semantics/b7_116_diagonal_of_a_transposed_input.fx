// An output is a view of an input that was transposed in place.
// run: functionalize, run
graph(%x: f32[2, 3]) {
  %t: f32[3, 2][1, 3] = aten.transpose_.default(%x, 1, 0)
  %d: f32[2][4]+1 = aten.diagonal.default(%x, -1)
  return %d
}

// == functionalize
// stage: functional
// output 0: user as view f32[2][4]+1 of input %x
// output 1: metadata of %x as view f32[3, 2][1, 3] of input %x
//
// graph(%x: f32[2, 3]) {
//   %v: f32[3, 2][1, 3] = aten.permute.default(%x, [1, 0])
//   %d: f32[2][4]+1 = aten.diagonal.default(%v, -1)
//   return %d, None
// }

// == run
// input 0: f32[3, 2][1, 3]+0 = [0.0 3.0 1.0 4.0 2.0 5.0]
// output 0: f32[2][4]+1 = [1.0 5.0], on the storage of input 0
