// A scatter of an empty part changes nothing, and the scatters around it put nothing back.
// run: reinplace, run
graph(%x: f32[4, 6]) {
  %y: f32[4, 6] = aten.mul.Tensor(%x, 2)
  %a: f32[2, 6]+6 = aten.slice.Tensor(%y, 0, 1, 3)
  %b: f32[0, 6]+18 = aten.slice.Tensor(%a, 0, 2, 3)
  %m: f32[0, 6] = aten.neg.default(%b)
  %c: f32[2, 6]+6 = aten.slice_scatter.default(%a, %m, 0, 2, 3)
  %y1: f32[4, 6] = aten.slice_scatter.default(%y, %c, 0, 1, 3)
  return %y1
}

// == reinplace
// stage: imported
//
// graph(%x: f32[4, 6]) {
//   %y: f32[4, 6] = aten.mul.Tensor(%x, 2)
//   return %y
// }

// == run
// input 0: f32[4, 6][6, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0 18.0 19.0 20.0 21.0 22.0 23.0]
// output 0: f32[4, 6][6, 1]+0 = [0.0 2.0 4.0 6.0 8.0 10.0 12.0 14.0 16.0 18.0 20.0 22.0 24.0 26.0 28.0 30.0 32.0 34.0 36.0 38.0 40.0 42.0 44.0 46.0]
