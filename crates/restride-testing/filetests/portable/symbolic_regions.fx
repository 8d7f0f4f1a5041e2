// Regions whose sizes and starts are symbols, cut in several dimensions.
// run: written, portable, run
// sizes: s0=4 s1=5
symbol s0 in [3, 9]
symbol s1 in [4, 9]
graph(%x: f32[s0, s1, 6], %v: f32[s1 - 1, 2]) {
  %y: f32[s0, s1, 6] = aten.add.Tensor(%x, 1)
  %one: f32[s1, 6]+6*s1 = aten.select.int(%y, 0, 1)
  %rows: f32[s1 - 1, 6]+6*s1 + 6 = aten.slice.Tensor(%one, 0, 1, s1)
  %block: f32[s1 - 1, 2][6, 1]+6*s1 + 8 = aten.slice.Tensor(%rows, 1, 2, 4)
  %a: f32[s1 - 1, 2][6, 1]+6*s1 + 8 = aten.copy_.default(%block, %v)
  return %y
}

// == written
// stage: functional
// symbol s0 in [3, 9]
// symbol s1 in [4, 9]
//
// graph(%x: f32[s0, s1, 6], %v: f32[s1 + -1, 2]) {
//   %y: f32[s0, s1, 6] = aten.add.Tensor(%x, 1)
//   %select: f32[s1, 6]+6*s1 = aten.select.int(%y, 0, 1)
//   %slice: f32[s1 + -1, 6]+6*s1 + 6 = aten.slice.Tensor(%select, 0, 1, s1)
//   %slice_scatter: f32[s1 + -1, 6]+6*s1 + 6 = aten.slice_scatter.default(%slice, %v, 1, 2, 4)
//   %slice_scatter_1: f32[s1, 6]+6*s1 = aten.slice_scatter.default(%select, %slice_scatter, 0, 1, s1)
//   %a: f32[s0, s1, 6] = aten.select_scatter.default(%y, %slice_scatter_1, 0, 1)
//   return %a
// }

// == portable
// stage: functional
// symbol s0 in [3, 9]
// symbol s1 in [4, 9]
//
// graph(%x: f32[s0, s1, 6], %v: f32[s1 + -1, 2]) {
//   %y: f32[s0, s1, 6] = aten.add.Tensor(%x, 1)
//   %select: f32[s1, 6]+6*s1 = aten.select.int(%y, 0, 1)
//   %slice: f32[s1 + -1, 6]+6*s1 + 6 = aten.slice.Tensor(%select, 0, 1, s1)
//   %slice_scatter: f32[s1 + -1, 6]+6*s1 + 6 = aten.slice_scatter.default(%slice, %v, 1, 2, 4)
//   %slice_scatter_1: f32[s1, 6]+6*s1 = aten.slice_scatter.default(%select, %slice_scatter, 0, 1, s1)
//   %unsqueeze: f32[1, s1, 6]+6*s1 = aten.unsqueeze.default(%slice_scatter_1, 0)
//   %a: f32[s0, s1, 6] = aten.slice_scatter.default(%y, %unsqueeze, 0, 1, 2)
//   return %a
// }

// == run
// input 0: f32[4, 5, 6][30, 6, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0 18.0 19.0 20.0 21.0 22.0 23.0 24.0 25.0 26.0 27.0 28.0 29.0 30.0 31.0 32.0 33.0 34.0 35.0 36.0 37.0 38.0 39.0 40.0 41.0 42.0 43.0 44.0 45.0 46.0 47.0 48.0 49.0 50.0 51.0 52.0 53.0 54.0 55.0 56.0 57.0 58.0 59.0 60.0 61.0 62.0 63.0 64.0 65.0 66.0 67.0 68.0 69.0 70.0 71.0 72.0 73.0 74.0 75.0 76.0 77.0 78.0 79.0 80.0 81.0 82.0 83.0 84.0 85.0 86.0 87.0 88.0 89.0 90.0 91.0 92.0 93.0 94.0 95.0 96.0 97.0 98.0 99.0 100.0 101.0 102.0 103.0 104.0 105.0 106.0 107.0 108.0 109.0 110.0 111.0 112.0 113.0 114.0 115.0 116.0 117.0 118.0 119.0]
// input 1: f32[4, 2][2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0]
// output 0: f32[4, 5, 6][30, 6, 1]+0 = [1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0 18.0 19.0 20.0 21.0 22.0 23.0 24.0 25.0 26.0 27.0 28.0 29.0 30.0 31.0 32.0 33.0 34.0 35.0 36.0 37.0 38.0 0.0 1.0 41.0 42.0 43.0 44.0 2.0 3.0 47.0 48.0 49.0 50.0 4.0 5.0 53.0 54.0 55.0 56.0 6.0 7.0 59.0 60.0 61.0 62.0 63.0 64.0 65.0 66.0 67.0 68.0 69.0 70.0 71.0 72.0 73.0 74.0 75.0 76.0 77.0 78.0 79.0 80.0 81.0 82.0 83.0 84.0 85.0 86.0 87.0 88.0 89.0 90.0 91.0 92.0 93.0 94.0 95.0 96.0 97.0 98.0 99.0 100.0 101.0 102.0 103.0 104.0 105.0 106.0 107.0 108.0 109.0 110.0 111.0 112.0 113.0 114.0 115.0 116.0 117.0 118.0 119.0 120.0]
