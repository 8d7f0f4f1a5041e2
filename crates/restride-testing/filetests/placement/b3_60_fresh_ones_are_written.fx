// What a factory made is written in place.
// run: remarks, copies, run
graph(%x: f32[2, 3]) {
  %o: f32[2, 3] = aten.ones_like.default(%x)
  %r: f32[3] = aten.select.int(%o, 0, 0)
  %w: f32[3] = aten.mul_.Tensor(%r, 2)
  %p: f32[2, 3] = aten.mul.Tensor(%o, %x)
  %d: f32[2, 3] = aten.flip.default(%p, [-1])
  return %d
}

// == remarks
// %r = aten.select.int(%o, 0, 0)
//   kept as a view of its base, %o: taken, 12 bytes
// %w = aten.mul.Tensor(%r, 2)
//   source computed in its region, %o: taken, 12 bytes
// %w = aten.mul.Tensor(%r, 2)
//   computed in a dying operand, %r: taken, 12 bytes
// %w_1 = aten.select_scatter.default(%o, %w, 0, 0)
//   scatter written into its base, %o: taken, 24 bytes
// %p = aten.mul.Tensor(%w_1, %x)
//   computed in a dying operand, %w_1: taken, 24 bytes
// %d = aten.flip.default(%p, [-1])
//   computed in the output's memory: taken, 24 bytes

// == copies
// none

// == run
// input 0: f32[2, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// output 0: f32[2, 3][3, 1]+0 = [4.0 2.0 0.0 5.0 4.0 3.0]
