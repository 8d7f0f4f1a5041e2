// The scatter's base is returned: its elements stay, though a value that was made in its place could make way.
// run: run
graph(%x0: bool[3, 4][8, 1]+1, %index: i64[3], %flag: bool[]) {
  %v3: i64[3] = aten.reshape.default(%index, [3])
  %v4: i64[3] = aten.transpose.int(%v3, 0, 0)
  %v5: i64[3] = higher_order.map_impl(@each0, [%v4, %v3], [])
  %v6: i64[3] = aten.copy_.default(%v5, %v4)
  %v7: i64[3] = aten.swapdims.default(%v6, -1, 0)
  %v8: i64[3] = aten.contiguous.default(%v6)
  %v9: i64[]+1 = aten.select.int(%v7, 0, 1)
  %v10: i64[] = aten.select.int(%v7, -1, -3)
  %v11: i64[], %v12: i64[]+1, %v13: i64[]+2 = aten.unbind.int(%v4)
  %v14: i64[]+1 = aten.mul.out(%v9, %v11, out=%v9)
  %v15: i64[3] = aten.permute.default(%v5, [0])
  %v16: i64[] = aten.copy_.default(%v10, %v12)
  %v17: i64[] = aten.resize_as_.default(%v16, %v10)
  %v18: i64[] = aten.fill_.Scalar(%v17, 2)
  return %v15, %v10, %index
}

graph @each0(%a0: i64[], %a1: i64[]) {
  %v2: bool[] = aten.gt.Scalar(%a1, 0)
  %v3: i64[] = aten.remainder_.Scalar(%a1, 3)
  %v4: i64[] = aten.resolve_conj.default(%v3)
  return %v3
}

// == run
// input 0: bool[3, 4][8, 1]+1 = [true true true true true true true true true true true true]
// input 1: i64[3][1]+0 = [0 1 2]
// input 2: bool[][]+0 = [false]
// output 0: i64[3][1]+0 = [2 0 2]
// output 1: i64[][]+0 = [2], on the storage of output 0
// output 2: i64[3][1]+0 = [0 1 2], on the storage of input 1
