// An intermediate whose other view is read with its old content: one copy.
// run: remarks, copies, run
graph(%x: f32[4, 2]) {
  %a: f32[4, 2] = aten.mul.Tensor(%x, 2)
  %o: f32[2, 2]+2 = aten.slice.Tensor(%a, 0, 1, 3)
  %k: f32[2, 2] = aten.clone.default(%o)
  %v: f32[2, 2] = aten.slice.Tensor(%a, 0, 0, 2)
  %w: f32[2, 2] = aten.add_.Tensor(%v, 1)
  %d: f32[2, 2] = aten.flip.default(%k, [-1])
  %e: f32[4, 2] = aten.flip.default(%a, [-1])
  return %d, %e
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 32 bytes
// %o = aten.slice.Tensor(%a, 0, 1, 3)
//   kept as a view of its base, %a: taken, 16 bytes
// %k = aten.clone.default(%o)
//   not kept as a view of its base, %o: it would prevent a larger saving, 16 bytes
// %v = aten.slice.Tensor(%a, 0, 0, 2)
//   kept as a view of its base, %a: taken, 16 bytes
// %w = aten.add.Tensor(%v, 1)
//   source computed in its region, %a: taken, 16 bytes
// %w = aten.add.Tensor(%v, 1)
//   computed in a dying operand, %v: taken, 16 bytes
// %w_1 = aten.slice_scatter.default(%a, %w, 0, 0, 2)
//   scatter written into its base, %a: taken, 32 bytes
// %d = aten.flip.default(%k, [-1])
//   computed in the output's memory: taken, 16 bytes
// %e = aten.flip.default(%w_1, [-1])
//   computed in the output's memory: taken, 32 bytes

// == copies
// %o to the arena, for %k = aten.clone.default, 16 bytes
//   not kept as a view of its base: it would prevent a larger saving

// == run
// input 0: f32[4, 2][2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0]
// output 0: f32[2, 2][2, 1]+0 = [6.0 4.0 10.0 8.0]
// output 1: f32[4, 2][2, 1]+0 = [3.0 1.0 7.0 5.0 10.0 8.0 14.0 12.0]
