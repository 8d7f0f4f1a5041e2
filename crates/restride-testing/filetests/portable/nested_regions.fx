// Writes through views of views: files say them by views down to the region and scatters back up, as PyTorch's own
// functionalization does; in portable form by slice_scatter, the scatter that every importer knows.
// run: written, portable, run
graph(%x: f32[4, 6], %v: f32[2, 2]) {
  %y: f32[4, 6] = aten.add.Tensor(%x, 1)
  %rows: f32[2, 6]+6 = aten.slice.Tensor(%y, 0, 1, 3)
  %block: f32[2, 2][6, 1]+6 = aten.slice.Tensor(%rows, 1, 0, 2)
  %a: f32[2, 2][6, 1]+6 = aten.copy_.default(%block, %v)
  %row: f32[6] = aten.select.int(%y, 0, 0)
  %tail: f32[5]+1 = aten.slice.Tensor(%row, 0, 1, 6)
  %b: f32[5]+1 = aten.fill_.Scalar(%tail, 5)
  %flat: f32[8, 3] = aten.view.default(%y, [8, 3])
  %part: f32[3, 3]+12 = aten.slice.Tensor(%flat, 0, 4, 7)
  %cells: f32[3, 2][3, 1]+13 = aten.slice.Tensor(%part, 1, 1, 3)
  %c: f32[3, 2][3, 1]+13 = aten.mul_.Tensor(%cells, 2)
  %d: f32[4][7] = aten.diagonal.default(%y)
  %e: f32[4][7] = aten.neg_.default(%d)
  return %y
}

// == written
// stage: functional
//
// graph(%x: f32[4, 6], %v: f32[2, 2]) {
//   %y: f32[4, 6] = aten.add.Tensor(%x, 1)
//   %slice: f32[2, 6]+6 = aten.slice.Tensor(%y, 0, 1, 3)
//   %slice_scatter: f32[2, 6]+6 = aten.slice_scatter.default(%slice, %v, 1, 0, 2)
//   %a: f32[4, 6] = aten.slice_scatter.default(%y, %slice_scatter, 0, 1, 3)
//   %row: f32[6] = aten.select.int(%a, 0, 0)
//   %tail: f32[5]+1 = aten.slice.Tensor(%row, 0, 1, 6)
//   %b: f32[5]+1 = aten.fill.Scalar(%tail, 5)
//   %slice_scatter_1: f32[6] = aten.slice_scatter.default(%row, %b, 0, 1, 6)
//   %b_1: f32[4, 6] = aten.select_scatter.default(%a, %slice_scatter_1, 0, 0)
//   %flat: f32[8, 3] = aten.view.default(%b_1, [8, 3])
//   %part: f32[3, 3]+12 = aten.slice.Tensor(%flat, 0, 4, 7)
//   %cells: f32[3, 2][3, 1]+13 = aten.slice.Tensor(%part, 1, 1, 3)
//   %c: f32[3, 2][3, 1]+13 = aten.mul.Tensor(%cells, 2)
//   %slice_scatter_2: f32[3, 3]+12 = aten.slice_scatter.default(%part, %c, 1, 1, 3)
//   %slice_scatter_3: f32[8, 3] = aten.slice_scatter.default(%flat, %slice_scatter_2, 0, 4, 7)
//   %c_1: f32[4, 6] = aten.reshape.default(%slice_scatter_3, [4, 6])
//   %d: f32[4][7] = aten.diagonal.default(%c_1)
//   %e: f32[4][7] = aten.neg.default(%d)
//   %e_1: f32[4, 6] = aten.diagonal_scatter.default(%c_1, %e)
//   return %e_1
// }

// == portable
// stage: functional
//
// graph(%x: f32[4, 6], %v: f32[2, 2]) {
//   %y: f32[4, 6] = aten.add.Tensor(%x, 1)
//   %slice: f32[2, 6]+6 = aten.slice.Tensor(%y, 0, 1, 3)
//   %slice_scatter: f32[2, 6]+6 = aten.slice_scatter.default(%slice, %v, 1, 0, 2)
//   %a: f32[4, 6] = aten.slice_scatter.default(%y, %slice_scatter, 0, 1, 3)
//   %row: f32[6] = aten.select.int(%a, 0, 0)
//   %tail: f32[5]+1 = aten.slice.Tensor(%row, 0, 1, 6)
//   %b: f32[5]+1 = aten.fill.Scalar(%tail, 5)
//   %slice_scatter_1: f32[6] = aten.slice_scatter.default(%row, %b, 0, 1, 6)
//   %unsqueeze: f32[1, 6] = aten.unsqueeze.default(%slice_scatter_1, 0)
//   %b_1: f32[4, 6] = aten.slice_scatter.default(%a, %unsqueeze, 0, 0, 1)
//   %flat: f32[8, 3] = aten.view.default(%b_1, [8, 3])
//   %part: f32[3, 3]+12 = aten.slice.Tensor(%flat, 0, 4, 7)
//   %cells: f32[3, 2][3, 1]+13 = aten.slice.Tensor(%part, 1, 1, 3)
//   %c: f32[3, 2][3, 1]+13 = aten.mul.Tensor(%cells, 2)
//   %slice_scatter_2: f32[3, 3]+12 = aten.slice_scatter.default(%part, %c, 1, 1, 3)
//   %slice_scatter_3: f32[8, 3] = aten.slice_scatter.default(%flat, %slice_scatter_2, 0, 4, 7)
//   %c_1: f32[4, 6] = aten.view.default(%slice_scatter_3, [4, 6])
//   %d: f32[4][7] = aten.diagonal.default(%c_1)
//   %e: f32[4][7] = aten.neg.default(%d)
//   %reshape: f32[24] = aten.view.default(%c_1, [24])
//   %slice_scatter_4: f32[24] = aten.slice_scatter.default(%reshape, %e, 0, 0, 22, 7)
//   %e_1: f32[4, 6] = aten.view.default(%slice_scatter_4, [4, 6])
//   return %e_1
// }

// == run
// input 0: f32[4, 6][6, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0 18.0 19.0 20.0 21.0 22.0 23.0]
// input 1: f32[2, 2][2, 1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[4, 6][6, 1]+0 = [-1.0 5.0 5.0 5.0 5.0 5.0 0.0 -1.0 9.0 10.0 11.0 12.0 2.0 6.0 -30.0 16.0 34.0 36.0 19.0 40.0 42.0 -22.0 23.0 24.0]
