// Two inputs with cells in common: both writes are seen through both.
// run: remarks, copies, run
// share: %x %y
graph(%x: f32[3], %y: f32[3]+1) {
  %w: f32[3] = aten.add_.Tensor(%x, 1)
  %z: f32[3]+1 = aten.mul_.Tensor(%y, 2)
  return %w, %z
}

// == remarks
// %w = aten.slice.Tensor(%storage_x_y, 0, 0, 3)
//   kept as a view of its base, %storage_x_y: taken, 12 bytes
// %w_1 = aten.add.Tensor(%w, 1)
//   source computed in its region, %storage_x_y: taken, 12 bytes
// %w_1 = aten.add.Tensor(%w, 1)
//   computed in a dying operand, %w: taken, 12 bytes
// %w_2 = aten.slice_scatter.default(%storage_x_y, %w_1, 0, 0, 3)
//   scatter written into its base, %storage_x_y: taken, 16 bytes
// %z = aten.slice.Tensor(%w_2, 0, 1, 4)
//   kept as a view of its base, %w_2: taken, 12 bytes
// %z_1 = aten.mul.Tensor(%z, 2)
//   source computed in its region, %w_2: taken, 12 bytes
// %z_1 = aten.mul.Tensor(%z, 2)
//   computed in a dying operand, %z: taken, 12 bytes
// %z_2 = aten.slice_scatter.default(%w_2, %z_1, 0, 1, 4)
//   scatter written into its base, %w_2: taken, 16 bytes
// %v = aten.slice.Tensor(%z_2, 0, 0, 3)
//   kept as a view of its base, %z_2: taken, 12 bytes

// == copies
// none

// == run
// input 0: f32[3][1]+0 = [1.0 4.0 6.0]
// input 1: f32[3][1]+1 = [4.0 6.0 6.0], on the storage of input 0
// output 0: f32[3][1]+0 = [1.0 4.0 6.0], on the storage of input 0
// output 1: f32[3][1]+1 = [4.0 6.0 6.0], on the storage of input 0
