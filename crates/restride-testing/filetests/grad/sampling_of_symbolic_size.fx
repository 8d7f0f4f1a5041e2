// A grid samples images of any size: positions scale by a symbolic size.
// run: grad, run
// sizes: s0=3
symbol s0 in [1, inf]
graph(%x: f32[1, 1, s0, 2], %at: f32[1, 1, 2, 2]) {
  %p: f32[1, 1, 1, 2] = aten.grid_sampler_2d.default(%x, %at, 1, 2, True)
  %l: f32[] = aten.sum.default(%p)
  return %l
}

// == grad
// stage: functional
// symbol s0 in [1, inf]
// output 0: loss
// output 1: gradient of %x
// output 2: gradient of %at
//
// graph(%x: f32[1, 1, s0, 2], %at: f32[1, 1, 2, 2]) {
//   %p: f32[1, 1, 1, 2] = aten.grid_sampler_2d.default(%x, %at, 1, 2, True)
//   %l: f32[] = aten.sum.default(%p)
//   %grad: f32[] = aten.full.default([], 1, dtype=f32)
//   %grad_1: f32[1, 1, 1, 1] = aten.reshape.default(%grad, [1, 1, 1, 1])
//   %grad_2: f32[1, 1, 1, 2][1, 1, 1, 0] = aten.expand.default(%grad_1, [1, 1, 1, 2])
//   %grad_4: f32[1, 1, 2][0, 0, 0] = aten.reshape.default(%grad_2, [1, 1, 2])
//   %grad_5: f32[1, 1, 2][4, 4, 2]+1 = aten.select.int(%at, -1, 1)
//   %grad_6: f32[1, 2][4, 2]+1 = aten.reshape.default(%grad_5, [1, 2])
//   %grad_7: f32[1, 2] = aten.add.Scalar(%grad_6, 1.0)
//   %grad_8: f32[1, 2] = aten.mul.Scalar(%grad_7, TrueDiv(s0 + -1, 2))
//   %grad_9: f32[1, 2] = aten.sub.Scalar(%grad_8, 0.0)
//   %grad_10: f32[1, 2] = aten.sub.Scalar(%grad_9, 0.0)
//   %grad_13: f32[1, 2] = aten.abs.default(%grad_10)
//   %grad_14: f32[1, 2] = aten.div.Scalar(%grad_13, Max(1, s0 + -1))
//   %grad_15: f32[1, 2] = aten.floor.default(%grad_14)
//   %grad_16: f32[1, 2] = aten.mul.Scalar(%grad_15, Max(1, s0 + -1))
//   %grad_17: f32[1, 2] = aten.sub.Tensor(%grad_13, %grad_16)
//   %grad_18: f32[1, 2] = aten.remainder.Scalar(%grad_15, 2)
//   %grad_19: bool[1, 2] = aten.eq.Scalar(%grad_18, 1)
//   %grad_20: f32[1, 2] = aten.rsub.Scalar(%grad_17, Max(1, s0 + -1))
//   %grad_21: f32[1, 2] = aten.where.self(%grad_19, %grad_20, %grad_17)
//   %grad_22: f32[1, 2] = aten.add.Scalar(%grad_21, 0.0)
//   %grad_29: f32[1, 2] = aten.clamp.default(%grad_22, 0, s0 + -1)
//   %grad_31: f32[1, 2] = aten.round.default(%grad_29)
//   %grad_32: f32[1, 1, 2][4, 4, 2] = aten.select.int(%at, -1, 0)
//   %grad_33: f32[1, 2][4, 2] = aten.reshape.default(%grad_32, [1, 2])
//   %grad_34: f32[1, 2] = aten.add.Scalar(%grad_33, 1.0)
//   %grad_35: f32[1, 2] = aten.mul.Scalar(%grad_34, 0.5)
//   %grad_36: f32[1, 2] = aten.sub.Scalar(%grad_35, 0.0)
//   %grad_37: f32[1, 2] = aten.sub.Scalar(%grad_36, 0.0)
//   %grad_40: f32[1, 2] = aten.abs.default(%grad_37)
//   %grad_41: f32[1, 2] = aten.div.Scalar(%grad_40, 1)
//   %grad_42: f32[1, 2] = aten.floor.default(%grad_41)
//   %grad_43: f32[1, 2] = aten.sub.Tensor(%grad_40, %grad_42)
//   %grad_44: f32[1, 2] = aten.remainder.Scalar(%grad_42, 2)
//   %grad_45: bool[1, 2] = aten.eq.Scalar(%grad_44, 1)
//   %grad_46: f32[1, 2] = aten.rsub.Scalar(%grad_43, 1)
//   %grad_47: f32[1, 2] = aten.where.self(%grad_45, %grad_46, %grad_43)
//   %grad_48: f32[1, 2] = aten.add.Scalar(%grad_47, 0.0)
//   %grad_55: f32[1, 2] = aten.clamp.default(%grad_48, 0, 1)
//   %grad_57: f32[1, 2] = aten.round.default(%grad_55)
//   %grad_58: f32[1, 1, 2*s0] = aten.full.default([1, 1, 2*s0], 0, dtype=f32)
//   %grad_59: bool[1, 2] = aten.ge.Scalar(%grad_31, 0)
//   %grad_60: bool[1, 2] = aten.le.Scalar(%grad_31, s0 + -1)
//   %grad_61: bool[1, 2] = aten.logical_and.default(%grad_59, %grad_60)
//   %grad_62: f32[1, 2] = aten.clamp.default(%grad_31, 0, s0 + -1)
//   %grad_63: f32[1, 2] = aten.nan_to_num.default(%grad_62, 0.0)
//   %grad_64: i64[1, 2] = aten._to_copy.default(%grad_63, dtype=i64)
//   %grad_65: bool[1, 2] = aten.ge.Scalar(%grad_57, 0)
//   %grad_66: bool[1, 2] = aten.le.Scalar(%grad_57, 1)
//   %grad_67: bool[1, 2] = aten.logical_and.default(%grad_65, %grad_66)
//   %grad_68: bool[1, 2] = aten.logical_and.default(%grad_61, %grad_67)
//   %grad_69: f32[1, 2] = aten.clamp.default(%grad_57, 0, 1)
//   %grad_70: f32[1, 2] = aten.nan_to_num.default(%grad_69, 0.0)
//   %grad_71: i64[1, 2] = aten._to_copy.default(%grad_70, dtype=i64)
//   %grad_72: i64[1, 2] = aten.mul.Scalar(%grad_64, 2)
//   %grad_73: i64[1, 2] = aten.add.Tensor(%grad_72, %grad_71)
//   %grad_74: i64[1, 1, 2] = aten.unsqueeze.default(%grad_73, 1)
//   %grad_75: bool[1, 1, 2] = aten.unsqueeze.default(%grad_68, 1)
//   %grad_76: f32[1, 1, 2] = aten.where.ScalarOther(%grad_75, %grad_4, 0)
//   %grad_77: f32[1, 1, 2*s0] = aten.scatter_add.default(%grad_58, 2, %grad_74, %grad_76)
//   %grad_78: f32[1, 1, s0, 2] = aten.reshape.default(%grad_77, [1, 1, s0, 2])
//   %grad_79: f32[1, 2] = aten.full.default([1, 2], 0, dtype=f32)
//   %grad_80: f32[1, 2] = aten.full.default([1, 2], 0, dtype=f32)
//   %grad_81: f32[1, 2, 2] = aten.stack.default([%grad_79, %grad_80], -1)
//   %grad_82: f32[1, 1, 2, 2] = aten.reshape.default(%grad_81, [1, 1, 2, 2])
//   return %l, %grad_78, %grad_82
// }

// == run
// input 0: f32[1, 1, 3, 2][6, 6, 2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// input 1: f32[1, 1, 2, 2][4, 4, 2, 1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[][]+0 = [4.0]
