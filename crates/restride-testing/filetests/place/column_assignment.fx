// Strided columns are assigned in place.
// run: place, remarks, run
graph(%boxes: f32[3, 4]) {
  %x: f32[3, 4] = aten.mul.Tensor(%boxes, 2)
  %c: f32[3][4]+1 = aten.select.int(%x, 1, 1)
  %w: f32[3][4]+1 = aten.add_.Tensor(%c, 100)
  return %x
}

// == place
// stage: placed
// arena 0 bytes, at least 0 needed, optimal
// buffer buf0: input %boxes, 48 bytes
// buffer buf1: output 0, 48 bytes
//
// graph(%boxes: f32[3, 4] @ buf0[3, 4]) {
//   %x @ buf1[3, 4] = aten.mul.Tensor(%boxes @ buf0[3, 4], 2)
//   free %c @ buf1[3][4]+1 = aten.select.int(%x @ buf1[3, 4], 1, 1)
//   %w @ buf1[3][4]+1 = aten.add.Tensor(%c @ buf1[3][4]+1, 100)
//   free %w_1 @ buf1[3, 4] = aten.select_scatter.default(%x @ buf1[3, 4], %w @ buf1[3][4]+1, 1, 1)
//   return %w_1 @ buf1[3, 4]
// }

// == remarks
// %c = aten.select.int(%x, 1, 1)
//   kept as a view of its base, %x: taken, 12 bytes
// %w = aten.add.Tensor(%c, 100)
//   source computed in its region, %x: taken, 12 bytes
// %w = aten.add.Tensor(%c, 100)
//   computed in a dying operand, %c: taken, 12 bytes
// %w_1 = aten.select_scatter.default(%x, %w, 1, 1)
//   scatter written into its base, %x: taken, 48 bytes

// == run
// input 0: f32[3, 4][4, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0]
// output 0: f32[3, 4][4, 1]+0 = [0.0 102.0 4.0 6.0 8.0 110.0 12.0 14.0 16.0 118.0 20.0 22.0]
