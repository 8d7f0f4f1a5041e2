// resize_ to less with a symbolic size: its cells run over the ends of rows.
// run: functionalize, run
// sizes: s0=3
symbol s0 in [2, inf]
graph(%x: f32[s0, 2]) {
  %y: f32[s0, 2] = aten.neg.default(%x)
  %r: f32[s0] = aten.resize_.default(%y, [s0])
  %w: f32[s0] = aten.add_.Tensor(%y, 1)
  return %y
}

// == functionalize
// stage: functional
// symbol s0 in [2, inf]
// output 0: user as view f32[s0] of base 1
// output 1: base
//
// graph(%x: f32[s0, 2]) {
//   %y: f32[s0, 2] = aten.neg.default(%x)
//   %w: f32[s0] = aten.as_strided.default(%y, [s0], [1], 0)
//   %w_1: f32[s0] = aten.add.Tensor(%w, 1)
//   %w_2: f32[s0, 2] = aten.as_strided_scatter.default(%y, %w_1, [s0], [1], 0)
//   return %w_1, %w_2
// }

// == run
// input 0: f32[3, 2][2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// output 0: f32[3][1]+0 = [1.0 0.0 -1.0]
