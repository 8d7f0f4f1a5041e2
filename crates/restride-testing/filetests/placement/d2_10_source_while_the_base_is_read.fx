// Between a source and its scatter the base is read, as a whole or through a view: the source is moved, because of that.
// run: remarks, copies, run
graph(%x: f32[4], %y: f32[2]) {
  %a: f32[4] = aten.mul.Tensor(%x, 2)
  %s: f32[2] = aten.mul.Tensor(%y, 3)
  %q: f32[4] = aten.flip.default(%a, [-1])
  %b: f32[4] = aten.slice_scatter.default(%a, %s, 0, 1, 3)
  %t: f32[2] = aten.neg.default(%y)
  %v: f32[2] = aten.slice.Tensor(%b, 0, 0, 2)
  %r: f32[2] = aten.flip.default(%v, [-1])
  %c: f32[4] = aten.slice_scatter.default(%b, %t, 0, 0, 2)
  %d: f32[4] = aten.flip.default(%c, [-1])
  return %d, %q, %r
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 16 bytes
// %s = aten.mul.Tensor(%y, 3)
//   source not computed in its region, %a: still read by %q = aten.flip.default(%a, [-1]), 8 bytes
// %s = aten.mul.Tensor(%y, 3)
//   not computed in its operand, %y: the caller can see that memory, 8 bytes
// %q = aten.flip.default(%a, [-1])
//   computed in the output's memory: taken, 16 bytes
// %b = aten.slice_scatter.default(%a, %s, 0, 1, 3)
//   scatter written into its base, %a: taken, 16 bytes
// %t = aten.neg.default(%y)
//   source not computed in its region, %b: still read by %r = aten.flip.default(%v, [-1]), 8 bytes
// %t = aten.neg.default(%y)
//   not computed in its operand, %y: the caller can see that memory, 8 bytes
// %v = aten.slice.Tensor(%b, 0, 0, 2)
//   kept as a view of its base, %b: taken, 8 bytes
// %r = aten.flip.default(%v, [-1])
//   computed in the output's memory: taken, 8 bytes
// %c = aten.slice_scatter.default(%b, %t, 0, 0, 2)
//   scatter written into its base, %b: taken, 16 bytes
// %d = aten.flip.default(%c, [-1])
//   computed in the output's memory: taken, 16 bytes

// == copies
// %s to the arena, for %b = aten.slice_scatter.default, 8 bytes
//   source not computed in its region: still read by %q = aten.flip.default
// %t to the arena, for %c = aten.slice_scatter.default, 8 bytes
//   source not computed in its region: still read by %r = aten.flip.default

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// input 1: f32[2][1]+0 = [0.0 1.0]
// output 0: f32[4][1]+0 = [6.0 3.0 -1.0 -0.0]
// output 1: f32[4][1]+0 = [6.0 4.0 2.0 0.0]
// output 2: f32[2][1]+0 = [0.0 0.0]
