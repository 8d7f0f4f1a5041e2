// Writes of parts of parts become writes into one view, with known sizes and with symbols.
// run: reinplace, run
// sizes: s0=5 s1=3
symbol s0 in [4, inf]
symbol s1 in [2, inf]
graph(%x: f32[s0, s1], %k: f32[4, 3, 4]) {
  %y: f32[s0, s1] = aten.mul.Tensor(%x, 2)
  %s: f32[2, s1][s1, 1]+s1 = aten.slice.Tensor(%y, 0, 1, 3)
  %v: f32[s1]+2*s1 = aten.select.int(%s, 0, 1)
  %m: f32[s1] = aten.neg.default(%v)
  %t: f32[2, s1]+s1 = aten.select_scatter.default(%s, %m, 0, 1)
  %y1: f32[s0, s1] = aten.slice_scatter.default(%y, %t, 0, 1, 3)
  %j: f32[4, 3, 4] = aten.mul.Tensor(%k, 2)
  %a: f32[3, 4]+12 = aten.select.int(%j, 0, 1)
  %b: f32[3, 2][4, 1]+13 = aten.slice.Tensor(%a, 1, 1, 3)
  %n: f32[3, 2] = aten.neg.default(%b)
  %c: f32[3, 4]+12 = aten.slice_scatter.default(%a, %n, 1, 1, 3)
  %j1: f32[4, 3, 4] = aten.select_scatter.default(%j, %c, 0, 1)
  return %y1, %j1
}

// == reinplace
// symbol s0 in [4, inf]
// symbol s1 in [2, inf]
//
// graph(%x: f32[s0, s1], %k: f32[4, 3, 4]) {
//   %y: f32[s0, s1] = aten.mul.Tensor(%x, 2)
//   %v: f32[s1]+2*s1 = aten.select.int(%y, 0, 2)
//   %m: f32[s1] = aten.neg.default(%v)
//   %y1_region: f32[s1] = aten.select.int(%y, 0, 2)
//   %y1_region_1: f32[s1] = aten.copy_.default(%y1_region, %m)
//   %j: f32[4, 3, 4] = aten.mul.Tensor(%k, 2)
//   %a: f32[3, 4]+12 = aten.select.int(%j, 0, 1)
//   %b: f32[3, 2][4, 1]+13 = aten.slice.Tensor(%a, 1, 1, 3)
//   %n: f32[3, 2][4, 1]+13 = aten.neg_.default(%b)
//   return %y, %j
// }

// == run
// input 0: f32[5, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0]
// input 1: f32[4, 3, 4][12, 4, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0 18.0 19.0 20.0 21.0 22.0 23.0 24.0 25.0 26.0 27.0 28.0 29.0 30.0 31.0 32.0 33.0 34.0 35.0 36.0 37.0 38.0 39.0 40.0 41.0 42.0 43.0 44.0 45.0 46.0 47.0]
// output 0: f32[5, 3][3, 1]+0 = [0.0 2.0 4.0 6.0 8.0 10.0 -12.0 -14.0 -16.0 18.0 20.0 22.0 24.0 26.0 28.0]
// output 1: f32[4, 3, 4][12, 4, 1]+0 = [0.0 2.0 4.0 6.0 8.0 10.0 12.0 14.0 16.0 18.0 20.0 22.0 24.0 -26.0 -28.0 30.0 32.0 -34.0 -36.0 38.0 40.0 -42.0 -44.0 46.0 48.0 50.0 52.0 54.0 56.0 58.0 60.0 62.0 64.0 66.0 68.0 70.0 72.0 74.0 76.0 78.0 80.0 82.0 84.0 86.0 88.0 90.0 92.0 94.0]
