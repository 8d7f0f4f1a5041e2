// set_ to a view with symbolic sizes, then a write.
// run: functionalize, run
// sizes: s0=3
symbol s0 in [2, inf]
graph(%x: f32[s0, 2], %y: f32[s0]) {
  %n: f32[s0, 2] = aten.neg.default(%x)
  %v: f32[s0][2] = aten.select.int(%n, 1, 0)
  %s: f32[s0][2] = aten.set_.source_Tensor(%y, %v)
  %w: f32[s0][2] = aten.add_.Tensor(%y, 1)
  return %n
}

// == functionalize
// stage: functional
// symbol s0 in [2, inf]
// output 0: user as view f32[s0, 2] of base 2
// output 1: metadata of %y as view f32[s0][2] of base 2
// output 2: base
//
// graph(%x: f32[s0, 2], %y: f32[s0]) {
//   %n: f32[s0, 2] = aten.neg.default(%x)
//   %w: f32[s0][2] = aten.select.int(%n, 1, 0)
//   %w_1: f32[s0][2] = aten.add.Tensor(%w, 1)
//   %w_2: f32[s0, 2] = aten.select_scatter.default(%n, %w_1, 1, 0)
//   return %w_2, None, %w_2
// }

// == run
// input 0: f32[3, 2][2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// input 1: f32[3][2]+0 = [1.0 -1.0 -3.0]
// output 0: f32[3, 2][2, 1]+0 = [1.0 -1.0 -1.0 -3.0 -3.0 -5.0], on the storage of input 1
