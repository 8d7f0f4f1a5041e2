// Columns copied one to the right: the first of a row runs on.
// run: functionalize, run
graph(%x: f32[3, 4]) {
  %a: f32[3, 3][4, 1]+1 = aten.slice.Tensor(%x, 1, 1, 4)
  %b: f32[3, 3][4, 1] = aten.slice.Tensor(%x, 1, 0, 3)
  %w: f32[3, 3][4, 1]+1 = aten.copy_.default(%a, %b)
  return %x
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: user as view f32[3, 4] of input %x
//
// graph(%x: f32[3, 4]) {
//   %b: f32[3, 3][4, 1] = aten.slice.Tensor(%x, 1, 0, 3)
//   %w_1: f32[3] = aten.select.int(%b, 0, 0)
//   %w_2: f32[1] = aten.slice.Tensor(%w_1, 0, 0, 1)
//   %w_3: f32[3, 4] = aten.as_strided_scatter.default(%x, %w_2, [1], [1], 1)
//   %w_5: f32[3, 3][4, 1] = aten.slice.Tensor(%w_3, 1, 0, 3)
//   %w_6: f32[3] = aten.select.int(%w_5, 0, 0)
//   %w_7: f32[1]+1 = aten.slice.Tensor(%w_6, 0, 1, 2)
//   %w_8: f32[3, 4] = aten.as_strided_scatter.default(%w_3, %w_7, [1], [1], 2)
//   %w_10: f32[3, 3][4, 1] = aten.slice.Tensor(%w_8, 1, 0, 3)
//   %w_11: f32[3] = aten.select.int(%w_10, 0, 0)
//   %w_12: f32[1]+2 = aten.slice.Tensor(%w_11, 0, 2, 3)
//   %w_13: f32[3, 4] = aten.as_strided_scatter.default(%w_8, %w_12, [1], [1], 3)
//   %w_15: f32[3]+4 = aten.select.int(%w_10, 0, 1)
//   %w_16: f32[1]+4 = aten.slice.Tensor(%w_15, 0, 0, 1)
//   %w_17: f32[3, 4] = aten.as_strided_scatter.default(%w_13, %w_16, [1], [1], 5)
//   %w_19: f32[3, 3][4, 1] = aten.slice.Tensor(%w_17, 1, 0, 3)
//   %w_20: f32[3]+4 = aten.select.int(%w_19, 0, 1)
//   %w_21: f32[1]+5 = aten.slice.Tensor(%w_20, 0, 1, 2)
//   %w_22: f32[3, 4] = aten.as_strided_scatter.default(%w_17, %w_21, [1], [1], 6)
//   %w_24: f32[3, 3][4, 1] = aten.slice.Tensor(%w_22, 1, 0, 3)
//   %w_25: f32[3]+4 = aten.select.int(%w_24, 0, 1)
//   %w_26: f32[1]+6 = aten.slice.Tensor(%w_25, 0, 2, 3)
//   %w_27: f32[3, 4] = aten.as_strided_scatter.default(%w_22, %w_26, [1], [1], 7)
//   %w_29: f32[3]+8 = aten.select.int(%w_24, 0, 2)
//   %w_30: f32[1]+8 = aten.slice.Tensor(%w_29, 0, 0, 1)
//   %w_31: f32[3, 4] = aten.as_strided_scatter.default(%w_27, %w_30, [1], [1], 9)
//   %w_33: f32[3, 3][4, 1] = aten.slice.Tensor(%w_31, 1, 0, 3)
//   %w_34: f32[3]+8 = aten.select.int(%w_33, 0, 2)
//   %w_35: f32[1]+9 = aten.slice.Tensor(%w_34, 0, 1, 2)
//   %w_36: f32[3, 4] = aten.as_strided_scatter.default(%w_31, %w_35, [1], [1], 10)
//   %w_38: f32[3, 3][4, 1] = aten.slice.Tensor(%w_36, 1, 0, 3)
//   %w_39: f32[3]+8 = aten.select.int(%w_38, 0, 2)
//   %w_40: f32[1]+10 = aten.slice.Tensor(%w_39, 0, 2, 3)
//   %w_41: f32[3, 4] = aten.as_strided_scatter.default(%w_36, %w_40, [1], [1], 11)
//   return %w_41, %w_41
// }

// == run
// input 0: f32[3, 4][4, 1]+0 = [0.0 0.0 0.0 0.0 4.0 4.0 4.0 4.0 8.0 8.0 8.0 8.0]
// output 0: f32[3, 4][4, 1]+0 = [0.0 0.0 0.0 0.0 4.0 4.0 4.0 4.0 8.0 8.0 8.0 8.0], on the storage of input 0
