// A scatter into a stretched input takes new memory, which is the output's: it is found through views and what follows in place.
// run: copies, run
graph(%v: f32[1]) {
  %e: f32[4, 6][0, 0] = aten.expand.default(%v, [4, 6])
  %u: f32[4, 1, 6][0, 0, 0] = aten.unsqueeze.default(%e, 1)
  %a: f32[4, 1, 2][0, 0, 0] = aten.slice.Tensor(%u, 2, 0, 2)
  %m: f32[4, 1, 2] = aten.mul.Tensor(%a, 2)
  %u1: f32[4, 1, 6] = aten.slice_scatter.default(%u, %m, 2, 0, 2)
  %y: f32[4, 6] = aten.squeeze.dim(%u1, 1)
  %b: f32[6] = aten.select.int(%y, 0, 0)
  %n: f32[6] = aten.neg.default(%b)
  %y1: f32[4, 6] = aten.select_scatter.default(%y, %n, 0, 0)
  %s: f32[6] = aten.sum.dim_IntList(%y1, [0])
  return %y1, %s
}

// == copies
// %u to output 0, for %u1 = aten.slice_scatter.default, 96 bytes
//   scatter not written into its base: the caller can see that memory
// %m to output 0, for %u1 = aten.slice_scatter.default, 32 bytes
//   source not computed in its region: the caller can see that memory

// == run
// input 0: f32[1][1]+0 = [0.0]
// output 0: f32[4, 6][6, 1]+0 = [-0.0 -0.0 -0.0 -0.0 -0.0 -0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0]
// output 1: f32[6][1]+0 = [0.0 0.0 0.0 0.0 0.0 0.0]
