// A part of a split is written.
// run: remarks, copies, run
graph(%x: f32[6]) {
  %a: f32[6] = aten.mul.Tensor(%x, 2)
  %p: f32[3], %q: f32[3]+3 = aten.split.Tensor(%a, 3)
  %w: f32[3]+3 = aten.add_.Tensor(%q, 1)
  %d: f32[6] = aten.flip.default(%a, [-1])
  return %d
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 24 bytes
// %p, %q = aten.split.Tensor(%a, 3)
//   kept as a view of its base, %a: taken, 24 bytes
// %w = aten.add.Tensor(%q, 1)
//   source computed in its region, %a: taken, 12 bytes
// %w = aten.add.Tensor(%q, 1)
//   computed in a dying operand, %q: taken, 12 bytes
// %w_1 = aten.slice_scatter.default(%a, %w, 0, 3, 6)
//   scatter written into its base, %a: taken, 24 bytes
// %d = aten.flip.default(%w_1, [-1])
//   computed in the output's memory: taken, 24 bytes

// == copies
// none

// == run
// input 0: f32[6][1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// output 0: f32[6][1]+0 = [11.0 9.0 7.0 4.0 2.0 0.0]
