// An output that is an input stays that tensor.
// run: functionalize, run
stage: imported
graph(%x: f32[3], %y: f32[3]) {
  %s: f32[3] = aten.add.Tensor(%x, %y)
  return %y, %s, %x
}

// == functionalize
// output 0: user as view f32[3] of input %y
// output 2: user as view f32[3] of input %x
//
// graph(%x: f32[3], %y: f32[3]) {
//   %s: f32[3] = aten.add.Tensor(%x, %y)
//   return %y, %s, %x
// }

// == run
// input 0: f32[3][1]+0 = [0.0 1.0 2.0]
// input 1: f32[3][1]+0 = [0.0 1.0 2.0]
// output 0: f32[3][1]+0 = [0.0 1.0 2.0], on the storage of input 1
// output 1: f32[3][1]+0 = [0.0 2.0 4.0]
// output 2: f32[3][1]+0 = [0.0 1.0 2.0], on the storage of input 0
