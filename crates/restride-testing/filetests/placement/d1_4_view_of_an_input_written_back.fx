// The same for a column of it.
// run: remarks, copies, run
graph(%x: f32[4, 2], %y: f32[4]) {
  %c: f32[4][2] = aten.select.int(%x, 1, 0)
  %a: f32[4] = aten.add.Tensor(%c, %y)
  %w: f32[4][2] = aten.copy_.default(%c, %a)
  %d: f32[4, 2] = aten.flip.default(%x, [-1])
  return %d
}

// == remarks
// %c = aten.select.int(%x, 1, 0)
//   kept as a view of its base, %x: taken, 16 bytes
// %a = aten.add.Tensor(%c, %y)
//   source computed in its region, %x: taken, 16 bytes
// %a = aten.add.Tensor(%c, %y)
//   computed in a dying operand, %c: taken, 16 bytes
// %w = aten.select_scatter.default(%x, %a, 1, 0)
//   scatter written into its base, %x: taken, 32 bytes
// %d = aten.flip.default(%w, [-1])
//   computed in the output's memory: taken, 32 bytes

// == copies
// none

// == run
// input 0: f32[4, 2][2, 1]+0 = [0.0 1.0 3.0 3.0 6.0 5.0 9.0 7.0]
// input 1: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[4, 2][2, 1]+0 = [1.0 0.0 3.0 3.0 5.0 6.0 7.0 9.0]
