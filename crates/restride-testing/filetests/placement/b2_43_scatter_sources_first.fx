// Both sources are there before the first scatter is: each is made in its region.
// run: copies, run
graph(%x: f32[6]) {
  %y: f32[6] = aten.mul.Tensor(%x, 2)
  %a: f32[3] = aten.slice.Tensor(%y, 0, 0, 3)
  %b: f32[3]+3 = aten.slice.Tensor(%y, 0, 3, 6)
  %m: f32[3] = aten.neg.default(%a)
  %n: f32[3] = aten.exp.default(%b)
  %y1: f32[6] = aten.slice_scatter.default(%y, %m, 0, 0, 3)
  %y2: f32[6] = aten.slice_scatter.default(%y1, %n, 0, 3, 6)
  return %y2
}

// == copies
// none

// == run
// input 0: f32[6][1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// output 0: f32[6][1]+0 = [-0.0 -2.0 -4.0 403.4288024902344 2980.9580078125 22026.46484375]
