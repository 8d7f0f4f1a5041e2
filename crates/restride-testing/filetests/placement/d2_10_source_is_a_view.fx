// A scatter puts a view of what was computed into a base that is read before that: why it is moved is said where it was
// computed.
// run: remarks, copies, run
graph(%x: f32[4, 2], %y: f32[4]) {
  %a: f32[4, 2] = aten.mul.Tensor(%x, 2)
  %s: f32[4] = aten.neg.default(%y)
  %q: f32[4, 2] = aten.flip.default(%a, [-1])
  %v: f32[2, 2] = aten.view.default(%s, [2, 2])
  %b: f32[4, 2] = aten.slice_scatter.default(%a, %v, 0, 1, 3)
  %d: f32[4, 2] = aten.flip.default(%b, [-1])
  return %d, %q
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 32 bytes
// %s = aten.neg.default(%y)
//   source not computed in its region, %a: still read by %q = aten.flip.default(%a, [-1]), 16 bytes
// %s = aten.neg.default(%y)
//   not computed in its operand, %y: the caller can see that memory, 16 bytes
// %q = aten.flip.default(%a, [-1])
//   computed in the output's memory: taken, 32 bytes
// %v = aten.view.default(%s, [2, 2])
//   kept as a view of its base, %s: taken, 16 bytes
// %b = aten.slice_scatter.default(%a, %v, 0, 1, 3)
//   source not computed in its region, %v: it is stored elsewhere already, 16 bytes
// %b = aten.slice_scatter.default(%a, %v, 0, 1, 3)
//   scatter written into its base, %a: taken, 32 bytes
// %d = aten.flip.default(%b, [-1])
//   computed in the output's memory: taken, 32 bytes

// == copies
// %v to the arena, for %b = aten.slice_scatter.default, 16 bytes
//   source not computed in its region, %s = aten.neg.default: still read by %q = aten.flip.default

// == run
// input 0: f32[4, 2][2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0]
// input 1: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[4, 2][2, 1]+0 = [2.0 0.0 -1.0 -0.0 -3.0 -2.0 14.0 12.0]
// output 1: f32[4, 2][2, 1]+0 = [2.0 0.0 6.0 4.0 10.0 8.0 14.0 12.0]
