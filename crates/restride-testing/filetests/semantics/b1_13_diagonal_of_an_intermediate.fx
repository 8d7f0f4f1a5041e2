// A write through an unread diagonal leaves nothing behind.
// run: functionalize, run
graph(%a: f32[2, 2]) {
  %x: f32[2, 2] = aten.mul.Tensor(%a, 2)
  %d: f32[2][3] = aten.diagonal.default(%x)
  %w: f32[2][3] = aten.add_.Tensor(%d, 1)
  return %a
}

// == functionalize
// output 0: user as view f32[2, 2] of input %a
//
// graph(%a: f32[2, 2]) {
//   return %a
// }

// == run
// input 0: f32[2, 2][2, 1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[2, 2][2, 1]+0 = [0.0 1.0 2.0 3.0], on the storage of input 0
