// Writes through the outputs of a split; the others keep their elements.
// run: functionalize, run
graph(%a: f32[4]) {
  %x: f32[4] = aten.clone.default(%a)
  %p: f32[2], %q: f32[2]+2 = aten.split.Tensor(%x, 2)
  %w: f32[2] = aten.add_.Tensor(%p, %q)
  return %p, %q
}

// == functionalize
// stage: functional
// output 0: user as view f32[2] of base 2
// output 1: user as view f32[2]+2 of base 2
// output 2: base
//
// graph(%a: f32[4]) {
//   %x: f32[4] = aten.clone.default(%a)
//   %p: f32[2], %q: f32[2]+2 = aten.split.Tensor(%x, 2)
//   %w: f32[2] = aten.add.Tensor(%p, %q)
//   %w_1: f32[4] = aten.slice_scatter.default(%x, %w, 0, 0, 2)
//   return %w, %q, %w_1
// }

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[2][1]+0 = [2.0 4.0]
// output 1: f32[2][1]+2 = [2.0 3.0], on the storage of output 0
