// An expanded view with a size that is a symbol sees a write to what it expands.
// run: functionalize, run
// sizes: s0=3
symbol s0 in [2, inf]
graph(%a: f32[1, 2], %n: f32[s0]) {
  %x: f32[1, 2] = aten.neg.default(%a)
  %e: f32[s0, 2][0, 1] = aten.expand.default(%x, [s0, 2])
  %w: f32[1, 2] = aten.add_.Tensor(%x, 1)
  %y: f32[s0, 2] = aten.mul.Tensor(%e, 2)
  return %y
}

// == functionalize
// stage: functional
// symbol s0 in [2, inf]
//
// graph(%a: f32[1, 2], %n: f32[s0]) {
//   %x: f32[1, 2] = aten.neg.default(%a)
//   %w: f32[1, 2] = aten.add.Tensor(%x, 1)
//   %y: f32[2, 1][1, 2] = aten.permute.default(%w, [1, 0])
//   %y_1: f32[1, 2] = aten.reshape.default(%y, [1, 2])
//   %y_2: f32[s0, 2][0, 1] = aten.expand.default(%y_1, [s0, 2])
//   %y_3: f32[s0, 2] = aten.mul.Tensor(%y_2, 2)
//   return %y_3
// }

// == run
// input 0: f32[1, 2][2, 1]+0 = [0.0 1.0]
// input 1: f32[3][1]+0 = [0.0 1.0 2.0]
// output 0: f32[3, 2][2, 1]+0 = [2.0 0.0 2.0 0.0 2.0 0.0]
