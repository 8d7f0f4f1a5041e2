// out= of no elements takes a result of symbolic sizes.
// run: functionalize, run
// sizes: s0=3
symbol s0 in [2, inf]
graph(%x: f32[s0, 2]) {
  %e: f32[0] = aten.empty.memory_format([0], dtype=f32)
  %r: f32[s0, 2] = aten.neg.out(%x, out=%e)
  %w: f32[s0, 2] = aten.add_.Tensor(%e, 1)
  return %r
}

// == functionalize
// symbol s0 in [2, inf]
//
// graph(%x: f32[s0, 2]) {
//   %r: f32[s0, 2] = aten.neg.default(%x)
//   %w: f32[s0, 2] = aten.add.Tensor(%r, 1)
//   return %w
// }

// == run
// input 0: f32[3, 2][2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// output 0: f32[3, 2][2, 1]+0 = [1.0 0.0 -1.0 -2.0 -3.0 -4.0]
