// A diagonal of permuted dimensions.
// run: remarks, copies, run
graph(%x: f32[3, 2, 3]) {
  %a: f32[3, 2, 3] = aten.mul.Tensor(%x, 2)
  %m: f32[3, 2, 3][1, 3, 6] = aten.permute.default(%a, [2, 1, 0])
  %v: f32[2, 3][3, 7] = aten.diagonal.default(%m, 0, 0, 2)
  %w: f32[2, 3][3, 7] = aten.add_.Tensor(%v, 1)
  %d: f32[3, 2, 3] = aten.flip.default(%a, [-1])
  return %d
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 72 bytes
// %m = aten.permute.default(%a, [2, 1, 0])
//   kept as a view of its base, %a: taken, 72 bytes
// %v = aten.diagonal.default(%m, 0, 0, 2)
//   kept as a view of its base, %m: taken, 24 bytes
// %w = aten.add.Tensor(%v, 1)
//   source computed in its region, %a: taken, 24 bytes
// %w = aten.add.Tensor(%v, 1)
//   computed in a dying operand, %v: taken, 24 bytes
// %w_1 = aten.as_strided_scatter.default(%a, %w, [2, 3], [3, 7], 0)
//   scatter written into its base, %a: taken, 72 bytes
// %d = aten.flip.default(%w_1, [-1])
//   computed in the output's memory: taken, 72 bytes

// == copies
// none

// == run
// input 0: f32[3, 2, 3][6, 3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0]
// output 0: f32[3, 2, 3][6, 3, 1]+0 = [4.0 2.0 1.0 10.0 8.0 7.0 16.0 15.0 12.0 22.0 21.0 18.0 29.0 26.0 24.0 35.0 32.0 30.0]
