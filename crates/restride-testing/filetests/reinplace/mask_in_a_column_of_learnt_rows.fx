// A result beside values whose strides are not sure has the type that agrees with its operands' declared ones.
// run: reinplace, run
symbol u0 in [0, 3]

graph(%x: f32[3, 4], %m: bool[3]) {
  %clone: f32[3, 4] = aten.clone.default(%x)
  %rows: f32[u0, 4] = aten.index.Tensor(%clone, [%m])
  %mul: f32[u0, 4] = aten.mul.Tensor(%rows, 2)
  %index_put_: f32[3, 4] = aten.index_put_.default(%clone, [%m], %mul)
  %not: bool[3] = aten.bitwise_not.default(%m)
  %column: f32[3][4]+1 = aten.select.int(%index_put_, 1, 1)
  %masked_fill_: f32[3][4]+1 = aten.masked_fill_.Scalar(%column, %not, 0)
  return %clone
}

// == reinplace
// symbol u0 in [0, 3]
//
// graph(%x: f32[3, 4], %m: bool[3]) {
//   %rows: f32[u0, 4] = aten.index.Tensor(%x, [%m])
//   %mul: f32[u0, 4] = aten.mul.Tensor(%rows, 2)
//   %index_put: f32[3, 4] = aten.index_put.default(%x, [%m], %mul)
//   %not: bool[3] = aten.bitwise_not.default(%m)
//   %column: f32[3][4]+1 = aten.select.int(%index_put, 1, 1)
//   %masked_fill: f32[3] = aten.masked_fill.Scalar(%column, %not, 0)
//   %index_put_laid_out: f32[3, 4] = aten.clone.default(%index_put, memory_format=contiguous_format)
//   %masked_fill__region: f32[3][4]+1 = aten.select.int(%index_put_laid_out, 1, 1)
//   %masked_fill__region_1: f32[3][4]+1 = aten.copy_.default(%masked_fill__region, %masked_fill)
//   return %index_put_laid_out
// }

// == run
// input 0: f32[3, 4][4, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0]
// input 1: bool[3][1]+0 = [false true true]
// output 0: f32[3, 4][4, 1]+0 = [0.0 0.0 2.0 3.0 8.0 10.0 12.0 14.0 16.0 18.0 20.0 22.0]
