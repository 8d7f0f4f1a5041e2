// A tensor copied onto itself: nothing is done.
// run: remarks, copies, run
graph(%x: f32[4]) {
  %w: f32[4] = aten.add_.Tensor(%x, 1)
  %z: f32[4] = aten.copy_.default(%x, %w)
  %v: f32[2] = aten.slice.Tensor(%x, 0, 0, 2)
  %u: f32[2] = aten.copy_.default(%v, %v)
  %d: f32[4] = aten.flip.default(%x, [-1])
  return %d
}

// == remarks
// %w = aten.add.Tensor(%x, 1)
//   computed in the input's memory, %x: taken, 16 bytes
// %w = aten.add.Tensor(%x, 1)
//   computed in a dying operand, %x: taken, 16 bytes
// %d = aten.flip.default(%w, [-1])
//   computed in the output's memory: taken, 16 bytes

// == copies
// none

// == run
// input 0: f32[4][1]+0 = [1.0 2.0 3.0 4.0]
// output 0: f32[4][1]+0 = [4.0 3.0 2.0 1.0]
