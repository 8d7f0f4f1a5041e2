// set_ of an input: it is on the other input's memory from then on.
// run: functionalize, run
graph(%x: f32[2], %y: f32[3]) {
  %s: f32[3] = aten.set_.source_Tensor(%x, %y)
  %z: f32[3] = aten.add.Tensor(%x, 1)
  return %z
}

// == functionalize
// output 1: metadata of %x as view f32[3] of input %y
//
// graph(%x: f32[2], %y: f32[3]) {
//   %z: f32[3] = aten.add.Tensor(%y, 1)
//   return %z, None
// }

// == run
// input 0: f32[3][1]+0 = [0.0 1.0 2.0]
// input 1: f32[3][1]+0 = [0.0 1.0 2.0], on the storage of input 0
// output 0: f32[3][1]+0 = [1.0 2.0 3.0]
