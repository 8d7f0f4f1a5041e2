// An expanded value is read before and after a size is learnt from data.
// run: run
symbol u0 in [0, 2]
graph(%x: f32[2], %y: f32[2, 4], %g: bool[1, 4]) {
  %e: bool[2, 4][0, 1] = aten.expand.default(%g, [2, 4])
  %w: f32[2, 4] = aten.where.ScalarSelf(%e, 1.0, %y)
  %m: bool[2] = aten.gt.Scalar(%x, 0)
  %i: f32[u0, 4] = aten.index.Tensor(%w, [%m])
  %s: f32[4] = aten.sum.dim_IntList(%i, [0])
  %z: f32[2, 4] = aten.where.self(%e, %y, %s)
  return %z
}

// == run
// input 0: f32[2][1]+0 = [0.0 1.0]
// input 1: f32[2, 4][4, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0]
// input 2: bool[1, 4][4, 1]+0 = [false true true true]
// output 0: f32[2, 4][4, 1]+0 = [4.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0]
