// The old content of another view is read after the write: one copy.
// run: remarks, copies, run
graph(%x: f32[4, 2]) {
  %v: f32[2, 2] = aten.slice.Tensor(%x, 0, 0, 2)
  %o: f32[2, 2]+2 = aten.slice.Tensor(%x, 0, 1, 3)
  %k: f32[2, 2] = aten.clone.default(%o)
  %w: f32[2, 2] = aten.add_.Tensor(%v, 1)
  %d: f32[2, 2] = aten.flip.default(%k, [-1])
  return %d
}

// == remarks
// %o = aten.slice.Tensor(%x, 0, 1, 3)
//   kept as a view of its base, %x: taken, 16 bytes
// %k = aten.clone.default(%o)
//   not kept as a view of its base, %o: it would prevent a larger saving, 16 bytes
// %v = aten.slice.Tensor(%x, 0, 0, 2)
//   kept as a view of its base, %x: taken, 16 bytes
// %w = aten.add.Tensor(%v, 1)
//   source computed in its region, %x: taken, 16 bytes
// %w = aten.add.Tensor(%v, 1)
//   computed in a dying operand, %v: taken, 16 bytes
// %w_1 = aten.slice_scatter.default(%x, %w, 0, 0, 2)
//   scatter written into its base, %x: taken, 32 bytes
// %d = aten.flip.default(%k, [-1])
//   computed in the output's memory: taken, 16 bytes

// == copies
// %o to the arena, for %k = aten.clone.default, 16 bytes
//   not kept as a view of its base: it would prevent a larger saving

// == run
// input 0: f32[4, 2][2, 1]+0 = [1.0 2.0 3.0 4.0 4.0 5.0 6.0 7.0]
// output 0: f32[2, 2][2, 1]+0 = [3.0 2.0 5.0 4.0]
