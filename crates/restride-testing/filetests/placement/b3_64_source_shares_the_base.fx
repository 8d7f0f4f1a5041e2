// What a scatter puts in is a view of its base that meets the region: not in the base's memory.
// run: remarks, copies, run
graph(%x: f32[4]) {
  %a: f32[4] = aten.mul.Tensor(%x, 2)
  %s: f32[2] = aten.slice.Tensor(%a, 0, 0, 2)
  %b: f32[4] = aten.slice_scatter.default(%a, %s, 0, 1, 3)
  %d: f32[4] = aten.neg.default(%b)
  %e: f32[4] = aten.flip.default(%d, [-1])
  return %e
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 16 bytes
// %s = aten.slice.Tensor(%a, 0, 0, 2)
//   kept as a view of its base, %a: taken, 8 bytes
// %b = aten.slice_scatter.default(%a, %s, 0, 1, 3)
//   scatter not written into its base, %a: it shares only some cells with an operand, 16 bytes
// %b = aten.slice_scatter.default(%a, %s, 0, 1, 3)
//   source not computed in its region, %s: it is stored elsewhere already, 8 bytes
// %d = aten.neg.default(%b)
//   computed in a dying operand, %b: taken, 16 bytes
// %e = aten.flip.default(%d, [-1])
//   computed in the output's memory: taken, 16 bytes

// == copies
// %a to the arena, for %b = aten.slice_scatter.default, 16 bytes
//   scatter not written into its base: it shares only some cells with an operand
// %s to the arena, for %b = aten.slice_scatter.default, 8 bytes
//   source not computed in its region: it is stored elsewhere already

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[4][1]+0 = [-6.0 -2.0 -0.0 -0.0]
