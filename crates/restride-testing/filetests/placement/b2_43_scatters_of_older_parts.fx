// Parts of the base as it was before the others were written: each is put back without a copy, as no part lost a cell. The base
// is read after the first write, so it is not made in the output's memory.
// run: copies, run
graph(%x: f32[3, 4]) {
  %y: f32[3, 4] = aten.mul.Tensor(%x, 2)
  %a: f32[4] = aten.select.int(%y, 0, 0)
  %b: f32[4]+4 = aten.select.int(%y, 0, 1)
  %a1: f32[2]+1 = aten.slice.Tensor(%a, 0, 1, 3)
  %m: f32[2] = aten.neg.default(%a1)
  %a2: f32[4] = aten.slice_scatter.default(%a, %m, 0, 1, 3)
  %y1: f32[3, 4] = aten.select_scatter.default(%y, %a2, 0, 0)
  %b1: f32[2]+4 = aten.slice.Tensor(%b, 0, 0, 2)
  %n: f32[2] = aten.add.Tensor(%b1, 1)
  %b2: f32[4]+4 = aten.slice_scatter.default(%b, %n, 0, 0, 2)
  %y2: f32[3, 4] = aten.select_scatter.default(%y1, %b2, 0, 1)
  return %y2
}

// == copies
// %y2 to output 0, 48 bytes
//   not computed in the output's memory: it is stored elsewhere already

// == run
// input 0: f32[3, 4][4, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0]
// output 0: f32[3, 4][4, 1]+0 = [0.0 -2.0 -4.0 6.0 9.0 11.0 12.0 14.0 16.0 18.0 20.0 22.0]
