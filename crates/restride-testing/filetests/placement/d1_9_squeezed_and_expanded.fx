// A squeezed slice.
// run: remarks, copies, run
graph(%x: f32[3, 2]) {
  %a: f32[3, 2] = aten.mul.Tensor(%x, 2)
  %m: f32[3, 1][2, 1]+1 = aten.slice.Tensor(%a, 1, 1, 2)
  %v: f32[3][2]+1 = aten.squeeze.dim(%m, 1)
  %w: f32[3][2]+1 = aten.add_.Tensor(%v, 1)
  %d: f32[3, 2] = aten.flip.default(%a, [-1])
  return %d
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 24 bytes
// %v = aten.select.int(%a, 1, 1)
//   kept as a view of its base, %a: taken, 12 bytes
// %w = aten.add.Tensor(%v, 1)
//   source computed in its region, %a: taken, 12 bytes
// %w = aten.add.Tensor(%v, 1)
//   computed in a dying operand, %v: taken, 12 bytes
// %w_1 = aten.select_scatter.default(%a, %w, 1, 1)
//   scatter written into its base, %a: taken, 24 bytes
// %d = aten.flip.default(%w_1, [-1])
//   computed in the output's memory: taken, 24 bytes

// == copies
// none

// == run
// input 0: f32[3, 2][2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// output 0: f32[3, 2][2, 1]+0 = [3.0 0.0 7.0 4.0 11.0 8.0]
