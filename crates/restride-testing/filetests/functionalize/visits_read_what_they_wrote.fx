// Columns added to the columns right of them: each element reads what the one before left.
// run: functionalize, run
graph(%x: f32[3, 3]) {
  %a: f32[3, 2][3, 1]+1 = aten.slice.Tensor(%x, 1, 1, 3)
  %b: f32[3, 2][3, 1] = aten.slice.Tensor(%x, 1, 0, 2)
  %w: f32[3, 2][3, 1]+1 = aten.add_.Tensor(%a, %b)
  return %x
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: user as view f32[3, 3] of input %x
//
// graph(%x: f32[3, 3]) {
//   %w: f32[1]+1 = aten.as_strided.default(%x, [1], [1], 1)
//   %b: f32[3, 2][3, 1] = aten.slice.Tensor(%x, 1, 0, 2)
//   %w_1: f32[2] = aten.select.int(%b, 0, 0)
//   %w_2: f32[1] = aten.slice.Tensor(%w_1, 0, 0, 1)
//   %w_3: f32[1]+1 = aten.add.Tensor(%w, %w_2)
//   %w_4: f32[3, 3] = aten.as_strided_scatter.default(%x, %w_3, [1], [1], 1)
//   %w_5: f32[1]+2 = aten.as_strided.default(%w_4, [1], [1], 2)
//   %w_6: f32[3, 2][3, 1] = aten.slice.Tensor(%w_4, 1, 0, 2)
//   %w_7: f32[2] = aten.select.int(%w_6, 0, 0)
//   %w_8: f32[1]+1 = aten.slice.Tensor(%w_7, 0, 1, 2)
//   %w_9: f32[1]+2 = aten.add.Tensor(%w_5, %w_8)
//   %w_10: f32[3, 3] = aten.as_strided_scatter.default(%w_4, %w_9, [1], [1], 2)
//   %w_11: f32[1]+4 = aten.as_strided.default(%w_10, [1], [1], 4)
//   %w_12: f32[2]+3 = aten.select.int(%w_6, 0, 1)
//   %w_13: f32[1]+3 = aten.slice.Tensor(%w_12, 0, 0, 1)
//   %w_14: f32[1]+4 = aten.add.Tensor(%w_11, %w_13)
//   %w_15: f32[3, 3] = aten.as_strided_scatter.default(%w_10, %w_14, [1], [1], 4)
//   %w_16: f32[1]+5 = aten.as_strided.default(%w_15, [1], [1], 5)
//   %w_17: f32[3, 2][3, 1] = aten.slice.Tensor(%w_15, 1, 0, 2)
//   %w_18: f32[2]+3 = aten.select.int(%w_17, 0, 1)
//   %w_19: f32[1]+4 = aten.slice.Tensor(%w_18, 0, 1, 2)
//   %w_20: f32[1]+5 = aten.add.Tensor(%w_16, %w_19)
//   %w_21: f32[3, 3] = aten.as_strided_scatter.default(%w_15, %w_20, [1], [1], 5)
//   %w_22: f32[1]+7 = aten.as_strided.default(%w_21, [1], [1], 7)
//   %w_23: f32[2]+6 = aten.select.int(%w_17, 0, 2)
//   %w_24: f32[1]+6 = aten.slice.Tensor(%w_23, 0, 0, 1)
//   %w_25: f32[1]+7 = aten.add.Tensor(%w_22, %w_24)
//   %w_26: f32[3, 3] = aten.as_strided_scatter.default(%w_21, %w_25, [1], [1], 7)
//   %w_27: f32[1]+8 = aten.as_strided.default(%w_26, [1], [1], 8)
//   %w_28: f32[3, 2][3, 1] = aten.slice.Tensor(%w_26, 1, 0, 2)
//   %w_29: f32[2]+6 = aten.select.int(%w_28, 0, 2)
//   %w_30: f32[1]+7 = aten.slice.Tensor(%w_29, 0, 1, 2)
//   %w_31: f32[1]+8 = aten.add.Tensor(%w_27, %w_30)
//   %w_32: f32[3, 3] = aten.as_strided_scatter.default(%w_26, %w_31, [1], [1], 8)
//   return %w_32, %w_32
// }

// == run
// input 0: f32[3, 3][3, 1]+0 = [0.0 1.0 3.0 3.0 7.0 12.0 6.0 13.0 21.0]
// output 0: f32[3, 3][3, 1]+0 = [0.0 1.0 3.0 3.0 7.0 12.0 6.0 13.0 21.0], on the storage of input 0
