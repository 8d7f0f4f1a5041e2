// Through a transpose of an input: in its memory.
// run: remarks, copies, run
graph(%x: f32[4, 3], %y: f32[1]) {
  %v: f32[3, 4][1, 3] = aten.t.default(%x)
  %w: f32[3, 4][1, 3] = aten.add_.Tensor(%v, %y)
  return %w
}

// == remarks
// %v = aten.t.default(%x)
//   kept as a view of its base, %x: taken, 48 bytes
// %w = aten.add.Tensor(%v, %y)
//   computed in the input's memory, %x: taken, 48 bytes
// %w = aten.add.Tensor(%v, %y)
//   computed in a dying operand, %v: taken, 48 bytes
// %w_1 = aten.permute.default(%w, [1, 0])
//   kept as a view of its base, %w: taken, 48 bytes

// == copies
// none

// == run
// input 0: f32[4, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0]
// input 1: f32[1][1]+0 = [0.0]
// output 0: f32[3, 4][1, 3]+0 = [0.0 3.0 6.0 9.0 1.0 4.0 7.0 10.0 2.0 5.0 8.0 11.0], on the storage of input 0
