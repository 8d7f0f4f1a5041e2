// Inputs that share nothing need no sizes: symbols stay.
// run: functionalize
symbol s0 in [2, inf]
graph(%x: f32[s0, 3]) {
  %r: f32[3] = aten.select.int(%x, 0, 0)
  %w: f32[3] = aten.add_.Tensor(%r, 1)
  return %x
}

// == functionalize
// stage: functional
// symbol s0 in [2, inf]
// output 0: mutation of %x
// output 1: user as view f32[s0, 3] of input %x
//
// graph(%x: f32[s0, 3]) {
//   %r: f32[3] = aten.select.int(%x, 0, 0)
//   %w: f32[3] = aten.add.Tensor(%r, 1)
//   %w_1: f32[s0, 3] = aten.select_scatter.default(%x, %w, 0, 0)
//   return %w_1, %w_1
// }
