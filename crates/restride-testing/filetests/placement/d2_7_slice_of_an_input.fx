// Through rows of an input: in its memory.
// run: remarks, copies, run
graph(%x: f32[4, 3], %y: f32[1]) {
  %v: f32[2, 3]+3 = aten.slice.Tensor(%x, 0, 1, 3)
  %w: f32[2, 3]+3 = aten.add_.Tensor(%v, %y)
  return %w
}

// == remarks
// %v = aten.slice.Tensor(%x, 0, 1, 3)
//   kept as a view of its base, %x: taken, 24 bytes
// %w = aten.add.Tensor(%v, %y)
//   source computed in its region, %x: taken, 24 bytes
// %w = aten.add.Tensor(%v, %y)
//   computed in a dying operand, %v: taken, 24 bytes
// %w_1 = aten.slice_scatter.default(%x, %w, 0, 1, 3)
//   scatter written into its base, %x: taken, 48 bytes

// == copies
// none

// == run
// input 0: f32[4, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0]
// input 1: f32[1][1]+0 = [0.0]
// output 0: f32[2, 3][3, 1]+3 = [3.0 4.0 5.0 6.0 7.0 8.0], on the storage of input 0
