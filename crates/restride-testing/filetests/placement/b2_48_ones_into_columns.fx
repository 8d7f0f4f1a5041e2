// Columns are replaced: what replaces them is made there.
// run: remarks, copies, run
graph(%x: f32[3, 4]) {
  %a: f32[3, 4] = aten.mul.Tensor(%x, 2)
  %o: f32[3, 2] = aten.ones.default([3, 2], dtype=f32)
  %b: f32[3, 4] = aten.slice_scatter.default(%a, %o, 1, 2, 9223372036854775807)
  %c: f32[4] = aten.sum.dim_IntList(%b, [0])
  return %c
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 48 bytes
// %o = aten.ones.default([3, 2], dtype=f32)
//   source computed in its region, %a: taken, 24 bytes
// %b = aten.slice_scatter.default(%a, %o, 1, 2, 9223372036854775807)
//   scatter written into its base, %a: taken, 48 bytes
// %c = aten.sum.dim_IntList(%b, [0])
//   computed in the output's memory: taken, 16 bytes

// == copies
// none

// == run
// input 0: f32[3, 4][4, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0]
// output 0: f32[4][1]+0 = [24.0 30.0 3.0 3.0]
