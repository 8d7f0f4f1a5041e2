// Bodies lay out what they compute as PyTorch does, whatever the functional program declares.
// run: reinplace, run

program "random 317"

graph(%x0: i64[2, 4][1, 2], %index: i64[3], %flag: bool[]) {
  %v3: bool[3] = aten.gt.Scalar(%index, 0)
  %v4: i64[3] = aten.masked_fill_.Scalar(%index, %v3, 7)
  %v5: i64[3] = aten.cumsum.default(%v4, 0)
  %v6: i64[3] = aten.remainder.Scalar(%index, 3)
  %v7: i64[3] = aten.put_.default(%v5, %v6, %index)
  %v8: i64[3] = aten.swapdims.default(%v4, 0, 0)
  aten._foreach_add_.List([%v5], [%v7])
  %v9: i64[3] = higher_order.cond(%flag, @yes0, @no1, [%v6, %v5, %flag])
  %v10: i64[3] = aten.remainder.Scalar(%index, 3)
  %v11: i64[3] = aten.view.default(%v10, [3])
  %v12: i64[3] = aten.expand.default(%v11, [3])
  %v13: i64[3] = aten.scatter_add_.default(%v7, -1, %v12, %v8)
  %v14: i64[3] = aten.addcmul_.default(%v11, %index, %v12)
  %v15: i64[]+1 = aten.select.int(%v14, 0, 1)
  %v16: i64[6] = aten.cat.default([%v7, %v5])
  aten._foreach_add_.Scalar([%v13, %v13], 2)
  %v17: i64[3] = aten.squeeze.dim(%v9, 0)
  %v18: i64[3] = aten.remainder.Scalar(%index, 3)
  %v19: i64[3] = aten._index_put_impl_.default(%v17, [%v18], %v5)
  %v20: i64[3] = aten.add_.Tensor(%v11, %v11)
  return %v5, %v7
}

graph @yes0(%a0: i64[3], %a1: i64[3], %a2: bool[]) {
  %v3: i64[3] = aten.remainder.Scalar(%a0, 3)
  %v4: i64[3] = aten._index_put_impl_.default(%a1, [%v3], %a0, True)
  %v5: i64[3] = aten.remainder.Scalar(%a0, 3)
  %v6: i64[3] = aten.index_select.default(%v4, 0, %v5)
  %v7: i64[3] = aten.clone.default(%a0)
  return %v7
}

graph @no1(%a0: i64[3], %a1: i64[3], %a2: bool[]) {
  %v3: i64[2, 1][2, 1] = aten.unfold.default(%a0, 0, 1, 2)
  %v4: i64[3] = aten.remainder.Scalar(%a0, 2)
  %v5: i64[2, 1][2, 1] = aten.add_.Tensor(%v3, %v3)
  %v6: i64[3] = aten.clone.default(%a0)
  return %v6
}

// == reinplace
// program "random 317"
//
// graph(%x0: i64[2, 4][1, 2], %index: i64[3], %flag: bool[]) {
//   %v3: bool[3] = aten.gt.Scalar(%index, 0)
//   %v4: i64[3] = aten.masked_fill_.Scalar(%index, %v3, 7)
//   %v5: i64[3] = aten.cumsum.default(%v4, 0)
//   %v6: i64[3] = aten.remainder.Scalar(%v4, 3)
//   %v7: i64[3] = aten.put_.default(%v5, %v6, %v4)
//   %add: i64[3] = aten.add_.Tensor(%v7, %v7)
//   %v9: i64[3] = higher_order.cond(%flag, @graph1, @graph2, [%flag, %v6, %add])
//   %v10: i64[3] = aten.remainder.Scalar(%v4, 3)
//   %v13: i64[3] = aten.scatter_add_.default(%add, -1, %v10, %v4)
//   %add_2: i64[3] = aten.add_.Scalar(%v13, 2)
//   %add_3: i64[3] = aten.add_.Scalar(%add_2, 2)
//   %v18: i64[3] = aten.remainder.Scalar(%v4, 3)
//   %v19: i64[3] = aten._index_put_impl_.default(%v9, [%v18], %add_3)
//   return %add_3, %add_3
// }
//
// graph @graph1(%a2: bool[], %base_0: i64[3], %base_1: i64[3]) {
//   %v3: i64[3] = aten.remainder.Scalar(%base_0, 3)
//   %v4: i64[3] = aten._index_put_impl_.default(%base_1, [%v3], %base_0, True)
//   %v5: i64[3] = aten.remainder.Scalar(%base_0, 3)
//   %v6: i64[3] = aten.index_select.default(%v4, 0, %v5)
//   %v7: i64[3] = aten.clone.default(%base_0)
//   return %v7
// }
//
// graph @graph2(%a2: bool[], %base_0: i64[3], %base_1: i64[3]) {
//   %v3: i64[2, 1][2, 1] = aten.unfold.default(%base_0, 0, 1, 2)
//   %v5: i64[2, 1] = aten.add.Tensor(%v3, %v3)
//   %v5_1: i64[2] = aten.reshape.default(%v5, [2])
//   %v5_2_region: i64[2][2] = aten.slice.Tensor(%base_0, 0, 0, 3, 2)
//   %v5_2_region_1: i64[2][2] = aten.copy_.default(%v5_2_region, %v5_1)
//   %v6: i64[3] = aten.clone.default(%base_0)
//   return %v6
// }

// == run
// input 0: i64[2, 4][1, 2]+0 = [0 2 4 6 1 3 5 7]
// input 1: i64[3][1]+0 = [0 7 7]
// input 2: bool[][]+0 = [false]
// output 0: i64[3][1]+0 = [4 32 32]
// output 1: i64[3][1]+0 = [4 32 32], on the storage of output 0
