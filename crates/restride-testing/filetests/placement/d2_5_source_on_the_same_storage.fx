// Half of a tensor is copied over the other half: that copy, and no other.
// run: remarks, copies, run
graph(%x: f32[4]) {
  %a: f32[4] = aten.mul.Tensor(%x, 2)
  %p: f32[2] = aten.slice.Tensor(%a, 0, 0, 2)
  %q: f32[2]+2 = aten.slice.Tensor(%a, 0, 2, 4)
  %w: f32[2] = aten.copy_.default(%p, %q)
  %d: f32[4] = aten.neg.default(%a)
  %e: f32[4] = aten.flip.default(%d, [-1])
  return %e
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 16 bytes
// %q = aten.slice.Tensor(%a, 0, 2, 4)
//   kept as a view of its base, %a: taken, 8 bytes
// %w = aten.slice_scatter.default(%a, %q, 0, 0, 2)
//   source not computed in its region, %q: it is stored elsewhere already, 8 bytes
// %w = aten.slice_scatter.default(%a, %q, 0, 0, 2)
//   scatter written into its base, %a: taken, 16 bytes
// %d = aten.neg.default(%w)
//   computed in a dying operand, %w: taken, 16 bytes
// %e = aten.flip.default(%d, [-1])
//   computed in the output's memory: taken, 16 bytes

// == copies
// %q to the arena, for %w = aten.slice_scatter.default, 8 bytes
//   source not computed in its region: it is stored elsewhere already

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[4][1]+0 = [-6.0 -4.0 -6.0 -4.0]
