// Windows that overlap are negated in turn: cells that several of them have are negated as often, which twice is not at all.
// run: functionalize
graph(%x: f32[32]) {
  %w: f32[5, 24][2, 1] = aten.unfold.default(%x, 0, 24, 2)
  %n: f32[5, 24][2, 1] = aten.neg_.default(%w)
  return %n
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: user as view f32[5, 24][2, 1] of input %x
//
// graph(%x: f32[32]) {
//   %n: f32[24] = aten.slice.Tensor(%x, 0, 0, 24)
//   %n_1: f32[24] = aten.neg.default(%n)
//   %n_2: f32[32] = aten.slice_scatter.default(%x, %n_1, 0, 0, 24)
//   %n_3: f32[24]+2 = aten.slice.Tensor(%n_2, 0, 2, 26)
//   %n_4: f32[24]+2 = aten.neg.default(%n_3)
//   %n_5: f32[32] = aten.slice_scatter.default(%n_2, %n_4, 0, 2, 26)
//   %n_6: f32[24]+4 = aten.slice.Tensor(%n_5, 0, 4, 28)
//   %n_7: f32[24]+4 = aten.neg.default(%n_6)
//   %n_8: f32[32] = aten.slice_scatter.default(%n_5, %n_7, 0, 4, 28)
//   %n_9: f32[24]+6 = aten.slice.Tensor(%n_8, 0, 6, 30)
//   %n_10: f32[24]+6 = aten.neg.default(%n_9)
//   %n_11: f32[32] = aten.slice_scatter.default(%n_8, %n_10, 0, 6, 30)
//   %n_12: f32[24]+8 = aten.slice.Tensor(%n_11, 0, 8, 32)
//   %n_13: f32[24]+8 = aten.neg.default(%n_12)
//   %n_14: f32[32] = aten.slice_scatter.default(%n_11, %n_13, 0, 8, 32)
//   %v: f32[5, 24][2, 1] = aten.as_strided.default(%n_14, [5, 24], [2, 1], 0)
//   return %n_14, %v
// }
