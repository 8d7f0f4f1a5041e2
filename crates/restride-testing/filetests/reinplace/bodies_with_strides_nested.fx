// Likewise in a loop in a branch.
// run: reinplace, run

program "random 978"

graph(%x0: f32[4, 3, 4], %x1: i32[3, 2, 3], %index: i64[3], %flag: bool[]) {
  %v4: i32[3, 2][6, 3]+1 = aten.select.int(%x1, 2, 1)
  %v5: i64[3] = higher_order.cond(%flag, @yes0, @no1, [%index])
  %v6: bool[] = aten.add.out(%flag, %flag, out=%flag)
  %v7: i64[3] = aten._neg_view.default(%index)
  %v8: bool[] = aten.gt.Scalar(%flag, 0)
  %v9: i32[3, 2][6, 3]+1 = aten.masked_fill_.Scalar(%v4, %v8, 7)
  %v10: i32[3, 2][6, 3]+1 = aten.expand.default(%v4, [-1, -1])
  %v11: i64[3] = aten.remainder.Scalar(%index, 3)
  %v12: i64[3] = aten.index_fill_.int_Scalar(%v7, 0, %v11, 5)
  %v13: i64[3] = aten.remainder.Scalar(%index, 3)
  %v14: i64[3] = aten.view.default(%v13, [3])
  %v15: i64[3] = aten.expand.default(%v14, [3])
  %v16: i64[3] = aten.scatter_reduce_.two(%v7, 0, %v15, %v12, "amax", include_self=False)
  %v17: i64[3], %v18: i32[3, 2][6, 3]+1 = higher_order.cond(%flag, @yes4, @no5, [%v15, %v13, %v4])
  return %v10, %v15
}

graph @yes0(%a0: i64[3]) {
  %v1: f32[6] = aten.view.dtype(%a0, f32)
  %v2: i64[3] = aten.fill_.Scalar(%a0, 0)
  %v3: i64[3] = aten.clone.default(%a0)
  return %v3
}

graph @no1(%a0: i64[3]) {
  %v1: bool[3] = aten.gt.Scalar(%a0, 0)
  %v2: bool[1, 3][1, 1] = aten.unfold.default(%v1, -1, 3, 1)
  %v3: bool[1, 3][1, 1] = aten.add_.Tensor(%v2, %v2)
  %v4: bool[1, 3][1, 1] = aten.tensor_split.sections(%v2, 1)
  %v5: i64[3] = aten.clone.default(%a0)
  return %v5
}

graph @yes4(%a0: i64[3], %a1: i64[3], %a2: i32[3, 2][6, 3]+1) {
  %v3: bool[3, 2] = aten.gt.Scalar(%a2, 0)
  %v4: i32[2, 3][3, 6]+1 = aten.permute.default(%a2, [1, 0])
  %v5: i32[2, 1, 3][3, 18, 6]+1 = aten.unsqueeze.default(%v4, -2)
  %v6: i32[1, 3][18, 6]+1, %v7: i32[1, 3][18, 6]+4 = aten.unbind.int(%v5)
  %v8: bool[3] = aten.gt.Scalar(%a0, 0)
  %v9: i32[2, 1, 3][3, 18, 6]+1 = aten.masked_fill_.Scalar(%v5, %v8, 7)
  %v10: i64[3] = aten.clone.default(%a0)
  return %v10, %a2
}

graph @no5(%a0: i64[3], %a1: i64[3], %a2: i32[3, 2][6, 3]+1) {
  %v3: i64[] = aten.full.default([], 0, dtype=i64)
  %v4: i64[] = higher_order.while_loop(@test2, @body3, [%v3], [%a2])
  %v5: i64[1, 3] = aten.unsqueeze.default(%a1, -2)
  %v6: i64[3] = aten.clone.default(%a0)
  return %v6, %a2
}

graph @test2(%a0: i64[], %a1: i32[3, 2][6, 3]+1) {
  %v2: bool[] = aten.lt.Scalar(%a0, 2)
  return %v2
}

graph @body3(%a0: i64[], %a1: i32[3, 2][6, 3]+1) {
  %v2: i64[] = aten.add.Scalar(%a0, 1)
  %v3: i32[3, 2] = aten.clone.default(%a1)
  %v4: i32[3, 1, 2] = aten.unfold.default(%v3, 1, 2, 2)
  %v5: i32[3, 2] = aten.mul.Tensor(%a1, %v3)
  %v6: i64[3, 2] = aten.cumsum.default(%v3, -1)
  return %v2
}

// == reinplace
// program "random 978"
//
// graph(%x0: f32[4, 3, 4], %x1: i32[3, 2, 3], %index: i64[3], %flag: bool[]) {
//   %v5: i64[3] = higher_order.cond(%flag, @graph1, @graph2, [%index])
//   %v6: bool[] = aten.add_.Tensor(%flag, %flag)
//   %v8: bool[] = aten.gt.Scalar(%v6, 0)
//   %v4: i32[3, 2][6, 3]+1 = aten.select.int(%x1, 2, 1)
//   %v9: i32[3, 2][6, 3]+1 = aten.masked_fill_.Scalar(%v4, %v8, 7)
//   %v11: i64[3] = aten.remainder.Scalar(%index, 3)
//   %v12: i64[3] = aten.neg_.default(%index)
//   %v12_1: i64[3] = aten.index_fill_.int_Scalar(%v12, 0, %v11, 5)
//   %v12_2: i64[3] = aten.neg.default(%v12_1)
//   %v13: i64[3] = aten.remainder_.Scalar(%v12_2, 3)
//   %v16: i64[3] = aten.scatter_reduce.two(%v12_1, 0, %v13, %v12_1, "amax", include_self=False)
//   %v16_1: i64[3] = aten.neg.out(%v16, out=%index)
//   %v17: i64[3], %v18: i32[3, 2][6, 3]+1 = higher_order.cond(%v6, @graph3, @graph6, [%v13, %v13, %x1])
//   %v: i32[3, 2][6, 3]+1 = aten.select.int(%x1, 2, 1)
//   return %v, %v13
// }
//
// graph @graph1(%base_0: i64[3]) {
//   %v2: i64[3] = aten.fill_.Scalar(%base_0, 0)
//   %v3: i64[3] = aten.clone.default(%v2)
//   return %v3
// }
//
// graph @graph2(%base_0: i64[3]) {
//   %v5: i64[3] = aten.clone.default(%base_0)
//   return %v5
// }
//
// graph @graph3(%a0: i64[3], %a1: i64[3], %base_0: i32[3, 2, 3]) {
//   %v3: i32[3, 2][6, 3]+1 = aten.select.int(%base_0, 2, 1)
//   %v8: bool[3] = aten.gt.Scalar(%a0, 0)
//   %v4: i32[2, 3][3, 6]+1 = aten.permute.default(%v3, [1, 0])
//   %v5: i32[2, 1, 3][3, 18, 6]+1 = aten.unsqueeze.default(%v4, -2)
//   %v9: i32[2, 1, 3] = aten.masked_fill.Scalar(%v5, %v8, 7)
//   %v9_1: i32[3, 2, 1][1, 3, 3] = aten.permute.default(%v9, [2, 0, 1])
//   %v9_2: i32[3, 2][1, 3] = aten.reshape.default(%v9_1, [3, 2])
//   %v9_3_region: i32[3, 2][6, 3]+1 = aten.select.int(%base_0, 2, 1)
//   %v9_3_region_1: i32[3, 2][6, 3]+1 = aten.copy_.default(%v9_3_region, %v9_2)
//   %v10: i64[3] = aten.clone.default(%a0)
//   %v9_2_laid_out: i32[3, 2][6, 3] = aten.empty_strided.default([3, 2], [6, 3], dtype=i32)
//   %v9_2_laid_out_1: i32[3, 2][6, 3] = aten.copy_.default(%v9_2_laid_out, %v9_2)
//   return %v10, %v9_2_laid_out_1
// }
//
// graph @graph6(%a0: i64[3], %a1: i64[3], %base_0: i32[3, 2, 3]) {
//   %v4: i32[3, 2][6, 3]+1 = aten.select.int(%base_0, 2, 1)
//   %v6: i64[3] = aten.clone.default(%a0)
//   return %v6, %v4
// }

// == run
// input 0: f32[4, 3, 4][12, 4, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0 18.0 19.0 20.0 21.0 22.0 23.0 24.0 25.0 26.0 27.0 28.0 29.0 30.0 31.0 32.0 33.0 34.0 35.0 36.0 37.0 38.0 39.0 40.0 41.0 42.0 43.0 44.0 45.0 46.0 47.0]
// input 1: i32[3, 2, 3][6, 3, 1]+0 = [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17]
// input 2: i64[3][1]+0 = [-5 -5 -5]
// input 3: bool[][]+0 = [false]
// output 0: i32[3, 2][6, 3]+1 = [1 4 7 10 13 16], on the storage of input 1
// output 1: i64[3][1]+0 = [1 1 1]
