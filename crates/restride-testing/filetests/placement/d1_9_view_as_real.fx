// The imaginary parts are written.
// run: remarks, copies, run
graph(%x: c64[3]) {
  %a: c64[3] = aten.mul.Tensor(%x, 2)
  %v: f32[3, 2] = aten.view_as_real.default(%a)
  %r: f32[3][2]+1 = aten.select.int(%v, 1, 1)
  %w: f32[3][2]+1 = aten.add_.Tensor(%r, 1)
  %d: c64[3] = aten.flip.default(%a, [-1])
  return %d
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 24 bytes
// %v = aten.view_as_real.default(%a)
//   kept as a view of its base, %a: taken, 24 bytes
// %r = aten.select.int(%v, 1, 1)
//   kept as a view of its base, %v: taken, 12 bytes
// %w = aten.add.Tensor(%r, 1)
//   source computed in its region, %w_1: taken, 12 bytes
// %w = aten.add.Tensor(%r, 1)
//   computed in a dying operand, %r: taken, 12 bytes
// %w_1 = aten.view_as_real.default(%a)
//   kept as a view of its base, %a: taken, 24 bytes
// %w_4 = aten.select_scatter.default(%w_1, %w, 1, 1)
//   scatter written into its base, %w_1: taken, 24 bytes
// %w_5 = aten.view_as_complex.default(%w_4)
//   kept as a view of its base, %w_4: taken, 24 bytes
// %d = aten.flip.default(%w_5, [-1])
//   computed in the output's memory: taken, 24 bytes

// == copies
// none

// == run
// input 0: c64[3][1]+0 = [(0.0+0.0j) (1.0+0.0j) (2.0+0.0j)]
// output 0: c64[3][1]+0 = [(4.0+1.0j) (2.0+1.0j) (0.0+1.0j)]
