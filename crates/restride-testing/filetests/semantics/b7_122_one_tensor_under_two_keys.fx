// One tensor is returned at two places of a structure: one memory.
// run: functionalize, run
// caller: output 0 = 7
stage: imported
pytree "[1, null]" "[1, null]"
graph(%a: f32[2]) {
  %x: f32[2] = aten.mul.Tensor(%a, 2)
  %y: f32[2] = aten.mul.Tensor(%a, 3)
  return %x, %y, %x
}

// == functionalize
// pytree "[1, null]" "[1, null]"
// output 0: user as view f32[2] of base 3
// output 2: user as view f32[2] of base 3
// output 3: base
//
// graph(%a: f32[2]) {
//   %x: f32[2] = aten.mul.Tensor(%a, 2)
//   %y: f32[2] = aten.mul.Tensor(%a, 3)
//   return %x, %y, %x, %x
// }

// == run
// input 0: f32[2][1]+0 = [0.0 1.0]
// output 0: f32[2][1]+0 = [7.0 7.0]
// output 1: f32[2][1]+0 = [0.0 3.0]
// output 2: f32[2][1]+0 = [7.0 7.0], on the storage of output 0
