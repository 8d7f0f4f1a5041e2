// What an input becomes is computed in its memory; nothing is copied at the end.
// run: remarks, copies, run
graph(%x: f32[4], %y: f32[4]) {
  %a: f32[4] = aten.add.Tensor(%x, %y)
  %w: f32[4] = aten.copy_.default(%x, %a)
  %d: f32[4] = aten.flip.default(%a, [-1])
  return %d
}

// == remarks
// %a = aten.add.Tensor(%x, %y)
//   computed in the input's memory, %x: taken, 16 bytes
// %a = aten.add.Tensor(%x, %y)
//   computed in a dying operand, %x: taken, 16 bytes
// %d = aten.flip.default(%a, [-1])
//   computed in the output's memory: taken, 16 bytes

// == copies
// none

// == run
// input 0: f32[4][1]+0 = [0.0 2.0 4.0 6.0]
// input 1: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[4][1]+0 = [6.0 4.0 2.0 0.0]
