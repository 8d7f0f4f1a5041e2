// A region that no chain of views shows stays in terms of strides in files; in portable form it is an index into the cells.
// run: written, portable, run
stage: functional
graph(%x: f32[3, 5], %v: f32[2, 2]) {
  %once: f32[3, 5] = aten.as_strided_scatter.default(%x, %v, [2, 2], [7, 2], 1)
  return %once
}

// == written
// graph(%x: f32[3, 5], %v: f32[2, 2]) {
//   %once: f32[3, 5] = aten.as_strided_scatter.default(%x, %v, [2, 2], [7, 2], 1)
//   return %once
// }

// == portable
// stage: functional
//
// graph(%x: f32[3, 5], %v: f32[2, 2]) {
//   %once: f32[15] = aten.view.default(%x, [15])
//   %once_1: i64[2] = aten.arange.start_step(1, 15, 7)
//   %once_2: i64[2, 1] = aten.view.default(%once_1, [2, 1])
//   %once_3: i64[2] = aten.arange.start_step(0, 4, 2)
//   %once_4: i64[2, 2] = aten.add.Tensor(%once_2, %once_3)
//   %once_5: i64[4] = aten.view.default(%once_4, [4])
//   %once_6: f32[4] = aten.view.default(%v, [4])
//   %once_7: f32[15] = aten.index_put.default(%once, [%once_5], %once_6)
//   %once_8: f32[3, 5] = aten.view.default(%once_7, [3, 5])
//   return %once_8
// }

// == run
// input 0: f32[3, 5][5, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0]
// input 1: f32[2, 2][2, 1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[3, 5][5, 1]+0 = [0.0 0.0 2.0 1.0 4.0 5.0 6.0 7.0 2.0 9.0 3.0 11.0 12.0 13.0 14.0]
