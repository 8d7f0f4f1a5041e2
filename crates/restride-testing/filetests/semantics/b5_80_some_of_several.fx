// Of several inputs some are written: only they are declared outputs, in the order of the inputs.
// run: functionalize, run
graph(%x: f32[2], %y: f32[2], %z: f32[2]) {
  %s: f32[2] = aten.add.Tensor(%x, %y)
  %w: f32[2] = aten.copy_.default(%z, %s)
  %v: f32[2] = aten.add_.Tensor(%x, %z)
  return %s
}

// == functionalize
// output 0: mutation of %x
// output 1: mutation of %z
//
// graph(%x: f32[2], %y: f32[2], %z: f32[2]) {
//   %s: f32[2] = aten.add.Tensor(%x, %y)
//   %v: f32[2] = aten.add.Tensor(%x, %s)
//   return %v, %s, %s
// }

// == run
// input 0: f32[2][1]+0 = [0.0 3.0]
// input 1: f32[2][1]+0 = [0.0 1.0]
// input 2: f32[2][1]+0 = [0.0 2.0]
// output 0: f32[2][1]+0 = [0.0 2.0]
