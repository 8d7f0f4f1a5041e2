// Another view is read after the write: it shows the new content, where it is.
// run: remarks, copies, run
graph(%x: f32[4, 2]) {
  %v: f32[2, 2] = aten.slice.Tensor(%x, 0, 0, 2)
  %o: f32[2, 2]+2 = aten.slice.Tensor(%x, 0, 1, 3)
  %w: f32[2, 2] = aten.add_.Tensor(%v, 1)
  %d: f32[2, 2] = aten.flip.default(%o, [-1])
  return %d
}

// == remarks
// %v = aten.slice.Tensor(%x, 0, 0, 2)
//   kept as a view of its base, %x: taken, 16 bytes
// %w = aten.add.Tensor(%v, 1)
//   source computed in its region, %x: taken, 16 bytes
// %w = aten.add.Tensor(%v, 1)
//   computed in a dying operand, %v: taken, 16 bytes
// %w_1 = aten.slice_scatter.default(%x, %w, 0, 0, 2)
//   scatter written into its base, %x: taken, 32 bytes
// %d = aten.slice.Tensor(%w_1, 0, 1, 3)
//   kept as a view of its base, %w_1: taken, 16 bytes
// %d_1 = aten.flip.default(%d, [-1])
//   computed in the output's memory: taken, 16 bytes

// == copies
// none

// == run
// input 0: f32[4, 2][2, 1]+0 = [1.0 2.0 3.0 4.0 4.0 5.0 6.0 7.0]
// output 0: f32[2, 2][2, 1]+0 = [4.0 3.0 5.0 4.0]
