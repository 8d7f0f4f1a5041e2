// A detached output beside what it was detached from.
// run: functionalize, run
// caller: output 1 = 7
graph(%a: f32[2]) {
  %x: f32[2] = aten.mul.Tensor(%a, 2)
  %d: f32[2] = aten.detach.default(%x)
  %v: f32[1]+1 = aten.slice.Tensor(%d, 0, 1, 2)
  return %x, %v
}

// == functionalize
// stage: functional
// output 0: user as view f32[2] of base 2
// output 1: user as view f32[1]+1 of base 2
// output 2: base
//
// graph(%a: f32[2]) {
//   %x: f32[2] = aten.mul.Tensor(%a, 2)
//   %d: f32[2] = aten.detach.default(%x)
//   %v: f32[1]+1 = aten.slice.Tensor(%d, 0, 1, 2)
//   return %x, %v, %x
// }

// == run
// input 0: f32[2][1]+0 = [0.0 1.0]
// output 0: f32[2][1]+0 = [0.0 7.0]
// output 1: f32[1][1]+1 = [7.0], on the storage of output 0
