// All of an input is written through a view of another shape.
// run: remarks, copies, run
graph(%x: f32[2, 3]) {
  %v: f32[6] = aten.view.default(%x, [6])
  %w: f32[6] = aten.add_.Tensor(%v, 1)
  return %w
}

// == remarks
// %v = aten.view.default(%x, [6])
//   kept as a view of its base, %x: taken, 24 bytes
// %w = aten.add.Tensor(%v, 1)
//   computed in the input's memory, %x: taken, 24 bytes
// %w = aten.add.Tensor(%v, 1)
//   computed in a dying operand, %v: taken, 24 bytes
// %w_1 = aten.reshape.default(%w, [2, 3])
//   kept as a view of its base, %w: taken, 24 bytes

// == copies
// none

// == run
// input 0: f32[2, 3][3, 1]+0 = [1.0 2.0 3.0 4.0 5.0 6.0]
// output 0: f32[6][1]+0 = [1.0 2.0 3.0 4.0 5.0 6.0], on the storage of input 0
