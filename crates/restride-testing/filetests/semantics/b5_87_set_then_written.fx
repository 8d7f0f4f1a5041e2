// set_ of an input to an intermediate, then a write: the new memory has it, the old one does not.
// run: functionalize, run
graph(%x: f32[2], %a: f32[2]) {
  %y: f32[2] = aten.neg.default(%a)
  %s: f32[2] = aten.set_.source_Tensor(%x, %y)
  %w: f32[2] = aten.add_.Tensor(%x, 10)
  return %y
}

// == functionalize
// output 0: user as view f32[2] of base 2
// output 1: metadata of %x as view f32[2] of base 2
// output 2: base
//
// graph(%x: f32[2], %a: f32[2]) {
//   %y: f32[2] = aten.neg.default(%a)
//   %w: f32[2] = aten.add.Tensor(%y, 10)
//   return %w, None, %w
// }

// == run
// input 0: f32[2][1]+0 = [10.0 9.0]
// input 1: f32[2][1]+0 = [0.0 1.0]
// output 0: f32[2][1]+0 = [10.0 9.0], on the storage of input 0
