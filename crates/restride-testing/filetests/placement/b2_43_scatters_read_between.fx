// The part is read before and after the whole is there: it is read in the whole.
// run: copies, run
graph(%x: f32[3, 4]) {
  %y: f32[3, 4] = aten.mul.Tensor(%x, 2)
  %a: f32[4]+4 = aten.select.int(%y, 0, 1)
  %v: f32[2]+5 = aten.slice.Tensor(%a, 0, 1, 3)
  %m: f32[2] = aten.neg.default(%v)
  %t: f32[4]+4 = aten.slice_scatter.default(%a, %m, 0, 1, 3)
  %s: f32[] = aten.sum.default(%t)
  %y1: f32[3, 4] = aten.select_scatter.default(%y, %t, 0, 1)
  %u: f32[4] = aten.add.Tensor(%t, %s)
  return %y1, %u
}

// == copies
// none

// == run
// input 0: f32[3, 4][4, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0]
// output 0: f32[3, 4][4, 1]+0 = [0.0 2.0 4.0 6.0 8.0 -10.0 -12.0 14.0 16.0 18.0 20.0 22.0]
// output 1: f32[4][1]+0 = [8.0 -10.0 -12.0 14.0]
