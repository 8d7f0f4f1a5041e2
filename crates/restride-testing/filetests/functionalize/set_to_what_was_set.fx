// An input is set to one that was set before.
// run: functionalize, run
graph(%x: f32[2], %y: f32[2], %a: f32[2]) {
  %n: f32[2] = aten.neg.default(%a)
  %s: f32[2] = aten.set_.source_Tensor(%x, %n)
  %t: f32[2] = aten.set_.source_Tensor(%y, %x)
  %w: f32[2] = aten.add_.Tensor(%y, 5)
  return %x
}

// == functionalize
// output 0: user as view f32[2] of base 3
// output 1: metadata of %x as view f32[2] of base 3
// output 2: metadata of %y as view f32[2] of base 3
// output 3: base
//
// graph(%x: f32[2], %y: f32[2], %a: f32[2]) {
//   %n: f32[2] = aten.neg.default(%a)
//   %w: f32[2] = aten.add.Tensor(%n, 5)
//   return %w, None, None, %w
// }

// == run
// input 0: f32[2][1]+0 = [5.0 4.0]
// input 1: f32[2][1]+0 = [5.0 4.0], on the storage of input 0
// input 2: f32[2][1]+0 = [0.0 1.0]
// output 0: f32[2][1]+0 = [5.0 4.0], on the storage of input 0
