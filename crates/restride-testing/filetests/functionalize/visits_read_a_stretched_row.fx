// A row of a transpose, stretched over it: the row is written before the others read it.
// run: functionalize, run
graph(%x: f32[2, 2]) {
  %t: f32[2, 2][1, 2] = aten.t.default(%x)
  %b: f32[1, 2][1, 2] = aten.slice.Tensor(%t, 0, 0, 1)
  %w: f32[2, 2][1, 2] = aten.add_.Tensor(%t, %b)
  return %x
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: user as view f32[2, 2] of input %x
//
// graph(%x: f32[2, 2]) {
//   %w: f32[1] = aten.as_strided.default(%x, [1], [1], 0)
//   %t: f32[2, 2][1, 2] = aten.t.default(%x)
//   %b: f32[1, 2][1, 2] = aten.slice.Tensor(%t, 0, 0, 1)
//   %w_1: f32[2, 2][0, 2] = aten.expand.default(%b, [2, 2])
//   %w_2: f32[2, 2][2, 0] = aten.permute.default(%w_1, [1, 0])
//   %w_3: f32[2][0] = aten.select.int(%w_2, 0, 0)
//   %w_4: f32[1][0] = aten.slice.Tensor(%w_3, 0, 0, 1)
//   %w_5: f32[1] = aten.add.Tensor(%w, %w_4)
//   %w_6: f32[2, 2] = aten.as_strided_scatter.default(%x, %w_5, [1], [1], 0)
//   %w_7: f32[1]+1 = aten.as_strided.default(%w_6, [1], [1], 1)
//   %w_8: f32[2][2] = aten.select.int(%w_6, 1, 0)
//   %w_9: f32[1, 2][4, 2] = aten.reshape.default(%w_8, [1, 2])
//   %w_10: f32[2, 2][0, 2] = aten.expand.default(%w_9, [2, 2])
//   %w_11: f32[2, 2][2, 0] = aten.permute.default(%w_10, [1, 0])
//   %w_12: f32[2][0] = aten.select.int(%w_11, 0, 0)
//   %w_13: f32[1][0] = aten.slice.Tensor(%w_12, 0, 1, 2)
//   %w_14: f32[1]+1 = aten.add.Tensor(%w_7, %w_13)
//   %w_15: f32[2, 2] = aten.as_strided_scatter.default(%w_6, %w_14, [1], [1], 1)
//   %w_16: f32[1]+2 = aten.as_strided.default(%w_15, [1], [1], 2)
//   %w_17: f32[2, 2][0, 2] = aten.expand.default(%w_9, [2, 2])
//   %w_18: f32[2, 2][2, 0] = aten.permute.default(%w_17, [1, 0])
//   %w_19: f32[2][0]+2 = aten.select.int(%w_18, 0, 1)
//   %w_20: f32[1][0]+2 = aten.slice.Tensor(%w_19, 0, 0, 1)
//   %w_21: f32[1]+2 = aten.add.Tensor(%w_16, %w_20)
//   %w_22: f32[2, 2] = aten.as_strided_scatter.default(%w_15, %w_21, [1], [1], 2)
//   %w_23: f32[1]+3 = aten.as_strided.default(%w_22, [1], [1], 3)
//   %w_24: f32[2][2] = aten.select.int(%w_22, 1, 0)
//   %w_25: f32[1, 2][4, 2] = aten.reshape.default(%w_24, [1, 2])
//   %w_26: f32[2, 2][0, 2] = aten.expand.default(%w_25, [2, 2])
//   %w_27: f32[2, 2][2, 0] = aten.permute.default(%w_26, [1, 0])
//   %w_28: f32[2][0]+2 = aten.select.int(%w_27, 0, 1)
//   %w_29: f32[1][0]+2 = aten.slice.Tensor(%w_28, 0, 1, 2)
//   %w_30: f32[1]+3 = aten.add.Tensor(%w_23, %w_29)
//   %w_31: f32[2, 2] = aten.as_strided_scatter.default(%w_22, %w_30, [1], [1], 3)
//   return %w_31, %w_31
// }

// == run
// input 0: f32[2, 2][2, 1]+0 = [0.0 1.0 4.0 7.0]
// output 0: f32[2, 2][2, 1]+0 = [0.0 1.0 4.0 7.0], on the storage of input 0
