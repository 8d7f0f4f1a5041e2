// Windows that do not meet are written.
// run: remarks, copies, run
graph(%x: f32[6]) {
  %a: f32[6] = aten.mul.Tensor(%x, 2)
  %u: f32[2, 2][3, 1] = aten.unfold.default(%a, 0, 2, 3)
  %w: f32[2, 2][3, 1] = aten.add_.Tensor(%u, 1)
  %d: f32[6] = aten.flip.default(%a, [-1])
  return %d
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 24 bytes
// %u = aten.unfold.default(%a, 0, 2, 3)
//   kept as a view of its base, %a: taken, 16 bytes
// %w = aten.add.Tensor(%u, 1)
//   source computed in its region, %a: taken, 16 bytes
// %w = aten.add.Tensor(%u, 1)
//   computed in a dying operand, %u: taken, 16 bytes
// %w_1 = aten.as_strided_scatter.default(%a, %w, [2, 2], [3, 1], 0)
//   scatter written into its base, %a: taken, 24 bytes
// %d = aten.flip.default(%w_1, [-1])
//   computed in the output's memory: taken, 24 bytes

// == copies
// none

// == run
// input 0: f32[6][1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// output 0: f32[6][1]+0 = [10.0 9.0 7.0 4.0 3.0 1.0]
