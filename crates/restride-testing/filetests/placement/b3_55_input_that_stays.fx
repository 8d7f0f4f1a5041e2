// The input must stay as it is: one copy of it, in which the region is computed.
// run: remarks, copies, run
graph(%x: f32[4, 2]) {
  %a: f32[4, 2] = aten.clone.default(%x)
  %v: f32[2, 2] = aten.slice.Tensor(%a, 0, 0, 2)
  %w: f32[2, 2] = aten.add_.Tensor(%v, 1)
  %d: f32[4, 2] = aten.flip.default(%a, [-1])
  return %d
}

// == remarks
// %a = aten.clone.default(%x)
//   not kept as a view of its base, %x: it would prevent a larger saving, 32 bytes
// %v = aten.slice.Tensor(%a, 0, 0, 2)
//   kept as a view of its base, %a: taken, 16 bytes
// %w = aten.add.Tensor(%v, 1)
//   source computed in its region, %a: taken, 16 bytes
// %w = aten.add.Tensor(%v, 1)
//   computed in a dying operand, %v: taken, 16 bytes
// %w_1 = aten.slice_scatter.default(%a, %w, 0, 0, 2)
//   scatter written into its base, %a: taken, 32 bytes
// %d = aten.flip.default(%w_1, [-1])
//   computed in the output's memory: taken, 32 bytes

// == copies
// %x to the arena, for %a = aten.clone.default, 32 bytes
//   not kept as a view of its base: it would prevent a larger saving

// == run
// input 0: f32[4, 2][2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0]
// output 0: f32[4, 2][2, 1]+0 = [2.0 1.0 4.0 3.0 5.0 4.0 7.0 6.0]
