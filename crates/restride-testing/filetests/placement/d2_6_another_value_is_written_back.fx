// What the input becomes is not what was computed from it first: that one does not lie there at the end.
// run: remarks, copies, run
graph(%x: f32[4], %y: f32[4]) {
  %b: f32[4] = aten.add.Tensor(%x, 1)
  %c: f32[4] = aten.mul.Tensor(%y, 2)
  %w: f32[4] = aten.copy_.default(%x, %c)
  %d: f32[4] = aten.flip.default(%b, [-1])
  return %d
}

// == remarks
// %c = aten.mul.Tensor(%y, 2)
//   computed in the input's memory, %x: taken, 16 bytes
// %d = aten.flip.default(%b, [-1])
//   computed in the output's memory: taken, 16 bytes

// == copies
// none

// == run
// input 0: f32[4][1]+0 = [0.0 2.0 4.0 6.0]
// input 1: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[4][1]+0 = [4.0 3.0 2.0 1.0]
