// The input is read after its new content is computed: one copy at the end.
// run: remarks, copies, run
graph(%x: f32[4], %y: f32[4]) {
  %c: f32[4] = aten.mul.Tensor(%y, 2)
  %b: f32[4] = aten.add.Tensor(%x, %c)
  %w: f32[4] = aten.copy_.default(%x, %c)
  %d: f32[4] = aten.flip.default(%b, [-1])
  return %d
}

// == remarks
// %c = aten.mul.Tensor(%y, 2)
//   not computed in the input's memory, %x: still read by %b = aten.add.Tensor(%x, %c), 16 bytes
// %c = aten.mul.Tensor(%y, 2)
//   not computed in its operand, %y: the caller can see that memory, 16 bytes
// %b = aten.add.Tensor(%x, %c)
//   computed in a dying operand, %x: taken, 16 bytes
// %d = aten.flip.default(%b, [-1])
//   computed in the output's memory: taken, 16 bytes

// == copies
// %c to %x, 16 bytes
//   not computed in the input's memory: still read by %b = aten.add.Tensor

// == run
// input 0: f32[4][1]+0 = [0.0 2.0 4.0 6.0]
// input 1: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[4][1]+0 = [9.0 6.0 3.0 0.0]
