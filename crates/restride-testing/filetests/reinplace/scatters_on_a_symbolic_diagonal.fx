// A part of a diagonal whose length is a symbol is written in place.
// run: reinplace, run
// sizes: s0=4 s1=3
symbol s0 in [2, inf]
symbol s1 in [2, inf]
graph(%x: f32[s0, s1, 5]) {
  %y: f32[s0, s1, 5] = aten.mul.Tensor(%x, 2)
  %d: f32[5, Min(s0, s1)][1, 5*s1 + 5] = aten.diagonal.default(%y)
  %a: f32[5] = aten.select.int(%d, 1, 0)
  %m: f32[5] = aten.neg.default(%a)
  %d1: f32[5, Min(s0, s1)][1, 5*s1 + 5] = aten.select_scatter.default(%d, %m, 1, 0)
  %y1: f32[s0, s1, 5] = aten.diagonal_scatter.default(%y, %d1)
  return %y1
}

// == reinplace
// symbol s0 in [2, inf]
// symbol s1 in [2, inf]
//
// graph(%x: f32[s0, s1, 5]) {
//   %y: f32[s0, s1, 5] = aten.mul.Tensor(%x, 2)
//   %d: f32[5, Min(s0, s1)][1, 5*s1 + 5] = aten.diagonal.default(%y)
//   %a: f32[5] = aten.select.int(%d, 1, 0)
//   %m: f32[5] = aten.neg_.default(%a)
//   return %y
// }

// == run
// input 0: f32[4, 3, 5][15, 5, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0 18.0 19.0 20.0 21.0 22.0 23.0 24.0 25.0 26.0 27.0 28.0 29.0 30.0 31.0 32.0 33.0 34.0 35.0 36.0 37.0 38.0 39.0 40.0 41.0 42.0 43.0 44.0 45.0 46.0 47.0 48.0 49.0 50.0 51.0 52.0 53.0 54.0 55.0 56.0 57.0 58.0 59.0]
// output 0: f32[4, 3, 5][15, 5, 1]+0 = [-0.0 -2.0 -4.0 -6.0 -8.0 10.0 12.0 14.0 16.0 18.0 20.0 22.0 24.0 26.0 28.0 30.0 32.0 34.0 36.0 38.0 40.0 42.0 44.0 46.0 48.0 50.0 52.0 54.0 56.0 58.0 60.0 62.0 64.0 66.0 68.0 70.0 72.0 74.0 76.0 78.0 80.0 82.0 84.0 86.0 88.0 90.0 92.0 94.0 96.0 98.0 100.0 102.0 104.0 106.0 108.0 110.0 112.0 114.0 116.0 118.0]
