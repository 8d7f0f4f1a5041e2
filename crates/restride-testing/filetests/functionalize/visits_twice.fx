// Two writes through different overlapping windows.
// run: functionalize, run
graph(%x: f32[9], %y: f32[3, 3]) {
  %u: f32[3, 3][1, 2] = aten.as_strided.default(%x, [3, 3], [1, 2])
  %z: f32[3, 3][1, 2] = aten.mul_.Tensor(%u, %y)
  %v: f32[2, 3, 2][1, 1, 2] = aten.as_strided.default(%x, [2, 3, 2], [1, 1, 2])
  %k: f32[3, 2][3, 1] = aten.slice.Tensor(%y, 1, 0, 2)
  %q: f32[2, 3, 2][1, 1, 2] = aten.lerp_.Scalar(%v, %k, 0.5)
  return %x
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: user as view f32[9] of input %x
//
// graph(%x: f32[9], %y: f32[3, 3]) {
//   %z: f32[3] = aten.slice.Tensor(%x, 0, 0, 3)
//   %z_1: f32[3, 3][1, 3] = aten.permute.default(%y, [1, 0])
//   %z_2: f32[3][3] = aten.select.int(%z_1, 0, 0)
//   %z_3: f32[3] = aten.mul.Tensor(%z, %z_2)
//   %z_4: f32[9] = aten.slice_scatter.default(%x, %z_3, 0, 0, 3)
//   %z_5: f32[3]+2 = aten.slice.Tensor(%z_4, 0, 2, 5)
//   %z_6: f32[3, 3][1, 3] = aten.permute.default(%y, [1, 0])
//   %z_7: f32[3][3]+1 = aten.select.int(%z_6, 0, 1)
//   %z_8: f32[3]+2 = aten.mul.Tensor(%z_5, %z_7)
//   %z_9: f32[9] = aten.slice_scatter.default(%z_4, %z_8, 0, 2, 5)
//   %z_10: f32[3]+4 = aten.slice.Tensor(%z_9, 0, 4, 7)
//   %z_11: f32[3, 3][1, 3] = aten.permute.default(%y, [1, 0])
//   %z_12: f32[3][3]+2 = aten.select.int(%z_11, 0, 2)
//   %z_13: f32[3]+4 = aten.mul.Tensor(%z_10, %z_12)
//   %z_14: f32[9] = aten.slice_scatter.default(%z_9, %z_13, 0, 4, 7)
//   %q: f32[2] = aten.slice.Tensor(%z_14, 0, 0, 2)
//   %k: f32[3, 2][3, 1] = aten.slice.Tensor(%y, 1, 0, 2)
//   %q_1: f32[2, 3, 2][0, 3, 1] = aten.expand.default(%k, [2, 3, 2])
//   %q_2: f32[2, 3, 2][1, 3, 0] = aten.permute.default(%q_1, [2, 1, 0])
//   %q_3: f32[3, 2][3, 0] = aten.select.int(%q_2, 0, 0)
//   %q_4: f32[2][0] = aten.select.int(%q_3, 0, 0)
//   %q_5: f32[2] = aten.lerp.Scalar(%q, %q_4, 0.5)
//   %q_6: f32[9] = aten.slice_scatter.default(%z_14, %q_5, 0, 0, 2)
//   %q_7: f32[2]+1 = aten.slice.Tensor(%q_6, 0, 1, 3)
//   %q_8: f32[2, 3, 2][0, 3, 1] = aten.expand.default(%k, [2, 3, 2])
//   %q_9: f32[2, 3, 2][1, 3, 0] = aten.permute.default(%q_8, [2, 1, 0])
//   %q_10: f32[3, 2][3, 0] = aten.select.int(%q_9, 0, 0)
//   %q_11: f32[2][0]+3 = aten.select.int(%q_10, 0, 1)
//   %q_12: f32[2]+1 = aten.lerp.Scalar(%q_7, %q_11, 0.5)
//   %q_13: f32[9] = aten.slice_scatter.default(%q_6, %q_12, 0, 1, 3)
//   %q_14: f32[2]+2 = aten.slice.Tensor(%q_13, 0, 2, 4)
//   %q_15: f32[2, 3, 2][0, 3, 1] = aten.expand.default(%k, [2, 3, 2])
//   %q_16: f32[2, 3, 2][1, 3, 0] = aten.permute.default(%q_15, [2, 1, 0])
//   %q_17: f32[3, 2][3, 0] = aten.select.int(%q_16, 0, 0)
//   %q_18: f32[2][0]+6 = aten.select.int(%q_17, 0, 2)
//   %q_19: f32[2]+2 = aten.lerp.Scalar(%q_14, %q_18, 0.5)
//   %q_20: f32[9] = aten.slice_scatter.default(%q_13, %q_19, 0, 2, 4)
//   %q_21: f32[2]+2 = aten.slice.Tensor(%q_20, 0, 2, 4)
//   %q_22: f32[2, 3, 2][0, 3, 1] = aten.expand.default(%k, [2, 3, 2])
//   %q_23: f32[2, 3, 2][1, 3, 0] = aten.permute.default(%q_22, [2, 1, 0])
//   %q_24: f32[3, 2][3, 0]+1 = aten.select.int(%q_23, 0, 1)
//   %q_25: f32[2][0]+1 = aten.select.int(%q_24, 0, 0)
//   %q_26: f32[2]+2 = aten.lerp.Scalar(%q_21, %q_25, 0.5)
//   %q_27: f32[9] = aten.slice_scatter.default(%q_20, %q_26, 0, 2, 4)
//   %q_28: f32[2]+3 = aten.slice.Tensor(%q_27, 0, 3, 5)
//   %q_29: f32[2, 3, 2][0, 3, 1] = aten.expand.default(%k, [2, 3, 2])
//   %q_30: f32[2, 3, 2][1, 3, 0] = aten.permute.default(%q_29, [2, 1, 0])
//   %q_31: f32[3, 2][3, 0]+1 = aten.select.int(%q_30, 0, 1)
//   %q_32: f32[2][0]+4 = aten.select.int(%q_31, 0, 1)
//   %q_33: f32[2]+3 = aten.lerp.Scalar(%q_28, %q_32, 0.5)
//   %q_34: f32[9] = aten.slice_scatter.default(%q_27, %q_33, 0, 3, 5)
//   %q_35: f32[2]+4 = aten.slice.Tensor(%q_34, 0, 4, 6)
//   %q_36: f32[2, 3, 2][0, 3, 1] = aten.expand.default(%k, [2, 3, 2])
//   %q_37: f32[2, 3, 2][1, 3, 0] = aten.permute.default(%q_36, [2, 1, 0])
//   %q_38: f32[3, 2][3, 0]+1 = aten.select.int(%q_37, 0, 1)
//   %q_39: f32[2][0]+7 = aten.select.int(%q_38, 0, 2)
//   %q_40: f32[2]+4 = aten.lerp.Scalar(%q_35, %q_39, 0.5)
//   %q_41: f32[9] = aten.slice_scatter.default(%q_34, %q_40, 0, 4, 6)
//   return %q_41, %q_41
// }

// == run
// input 0: f32[9][1]+0 = [0.0 2.25 3.875 4.5 18.5 16.0 48.0 7.0 8.0]
// input 1: f32[3, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0]
// output 0: f32[9][1]+0 = [0.0 2.25 3.875 4.5 18.5 16.0 48.0 7.0 8.0], on the storage of input 0
