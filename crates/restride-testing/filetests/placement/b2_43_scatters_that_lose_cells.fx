// What is put back is older than a write to the same cells, which is lost by that: the part has to be copied.
// run: copies, run
graph(%x: f32[3, 4]) {
  %y: f32[3, 4] = aten.mul.Tensor(%x, 2)
  %a: f32[4] = aten.select.int(%y, 0, 0)
  %m: f32[2] = aten.full.default([2], 7.0)
  %a2: f32[4] = aten.slice_scatter.default(%a, %m, 0, 1, 3)
  %z: f32[3] = aten.full.default([3], 9.0)
  %y1: f32[3, 4] = aten.select_scatter.default(%y, %z, 1, 0)
  %y2: f32[3, 4] = aten.select_scatter.default(%y1, %a2, 0, 0)
  return %y2
}

// == copies
// %a to the arena, for %a2 = aten.slice_scatter.default, 16 bytes
//   scatter not written into its base: still read by %y1 = aten.select_scatter.default
// %a2 to output 0, for %y2 = aten.select_scatter.default, 16 bytes
//   source not computed in its region: it is stored elsewhere already
// %m to the arena, for %a2 = aten.slice_scatter.default, 8 bytes
//   source not computed in its region: still read by %y1 = aten.select_scatter.default

// == run
// input 0: f32[3, 4][4, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0]
// output 0: f32[3, 4][4, 1]+0 = [0.0 7.0 7.0 6.0 9.0 10.0 12.0 14.0 9.0 18.0 20.0 22.0]
