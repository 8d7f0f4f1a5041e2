// Two inputs take each other's memory.
// run: functionalize, run
graph(%x: f32[2], %y: f32[2]) {
  %k: f32[2] = aten.detach.default(%x)
  %s: f32[2] = aten.set_.source_Tensor(%x, %y)
  %t: f32[2] = aten.set_.source_Tensor(%y, %k)
  %w: f32[2] = aten.add_.Tensor(%x, 5)
  %u: f32[2] = aten.mul_.Tensor(%y, 3)
  return %x
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: mutation of %y
// output 2: user as view f32[2] of input %y
// output 3: metadata of %x as view f32[2] of input %y
// output 4: metadata of %y as view f32[2] of input %x
//
// graph(%x: f32[2], %y: f32[2]) {
//   %w: f32[2] = aten.add.Tensor(%y, 5)
//   %u: f32[2] = aten.detach.default(%x)
//   %u_1: f32[2] = aten.mul.Tensor(%u, 3)
//   return %u_1, %w, %w, None, None
// }

// == run
// input 0: f32[2][1]+0 = [5.0 6.0]
// input 1: f32[2][1]+0 = [0.0 3.0]
// output 0: f32[2][1]+0 = [5.0 6.0], on the storage of input 0
