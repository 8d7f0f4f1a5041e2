// What computes a source reads all of the base: not in the region. Neither is a source whose base is read after the scatter.
// run: remarks, copies, run
graph(%x: f32[2, 3], %y: f32[3]) {
  %a: f32[2, 3] = aten.mul.Tensor(%x, 2)
  %s: f32[3] = aten.sum.dim_IntList(%a, [0])
  %b: f32[2, 3] = aten.select_scatter.default(%a, %s, 0, 1)
  %t: f32[3] = aten.neg.default(%y)
  %c: f32[2, 3] = aten.select_scatter.default(%b, %t, 0, 0)
  %d: f32[2, 3] = aten.flip.default(%b, [-1])
  %e: f32[2, 3] = aten.flip.default(%c, [-1])
  return %d, %e
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 24 bytes
// %s = aten.sum.dim_IntList(%a, [0])
//   source not computed in its region, %a: it shares only some cells with an operand, 12 bytes
// %b = aten.select_scatter.default(%a, %s, 0, 1)
//   scatter written into its base, %a: taken, 24 bytes
// %t = aten.neg.default(%y)
//   source not computed in its region, %b: still read by %d = aten.flip.default(%b, [-1]), 12 bytes
// %t = aten.neg.default(%y)
//   not computed in its operand, %y: the caller can see that memory, 12 bytes
// %c = aten.select_scatter.default(%b, %t, 0, 0)
//   scatter not written into its base, %b: still read by %d = aten.flip.default(%b, [-1]), 24 bytes
// %d = aten.flip.default(%b, [-1])
//   computed in the output's memory: taken, 24 bytes
// %e = aten.flip.default(%c, [-1])
//   computed in the output's memory: taken, 24 bytes

// == copies
// %b to the arena, for %c = aten.select_scatter.default, 24 bytes
//   scatter not written into its base: still read by %d = aten.flip.default
// %s to the arena, for %b = aten.select_scatter.default, 12 bytes
//   source not computed in its region: it shares only some cells with an operand
// %t to the arena, for %c = aten.select_scatter.default, 12 bytes
//   source not computed in its region: still read by %d = aten.flip.default

// == run
// input 0: f32[2, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// input 1: f32[3][1]+0 = [0.0 1.0 2.0]
// output 0: f32[2, 3][3, 1]+0 = [4.0 2.0 0.0 14.0 10.0 6.0]
// output 1: f32[2, 3][3, 1]+0 = [-2.0 -1.0 -0.0 14.0 10.0 6.0]
