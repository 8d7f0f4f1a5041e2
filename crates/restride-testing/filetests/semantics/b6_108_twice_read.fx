// One tensor given twice and only read.
// run: functionalize, run
// share: %x %y
graph(%x: f32[3], %y: f32[3]) {
  %s: f32[3] = aten.add.Tensor(%x, %y)
  return %s
}

// == functionalize
// graph(%x: f32[3], %y: f32[3]) {
//   %s: f32[3] = aten.add.Tensor(%x, %y)
//   return %s
// }

// == run
// input 0: f32[3][1]+0 = [0.0 1.0 2.0]
// input 1: f32[3][1]+0 = [0.0 1.0 2.0], on the storage of input 0
// output 0: f32[3][1]+0 = [0.0 2.0 4.0]
