// What a scatter puts in is read again: it is copied into the region, and lives on beside it.
// run: remarks, copies, run
graph(%x: f32[4], %y: f32[2]) {
  %a: f32[4] = aten.mul.Tensor(%x, 2)
  %s: f32[2] = aten.neg.default(%y)
  %b: f32[4] = aten.slice_scatter.default(%a, %s, 0, 1, 3)
  %c: f32[2] = aten.mul.Tensor(%s, 3)
  %d: f32[4] = aten.flip.default(%b, [-1])
  %e: f32[2] = aten.flip.default(%c, [-1])
  return %d, %e
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 16 bytes
// %s = aten.neg.default(%y)
//   source computed in its region, %a: taken, 8 bytes
// %b = aten.slice_scatter.default(%a, %s, 0, 1, 3)
//   scatter written into its base, %a: taken, 16 bytes
// %c = aten.mul.Tensor(%s, 3)
//   not computed in its operand, %s: still read by %d = aten.flip.default(%b, [-1]), 8 bytes
// %d = aten.flip.default(%b, [-1])
//   computed in the output's memory: taken, 16 bytes
// %e = aten.flip.default(%c, [-1])
//   computed in the output's memory: taken, 8 bytes

// == copies
// none

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// input 1: f32[2][1]+0 = [0.0 1.0]
// output 0: f32[4][1]+0 = [6.0 -1.0 -0.0 0.0]
// output 1: f32[2][1]+0 = [-3.0 -0.0]
