// Sizes that differ by dimensions of one element: each element has its cell.
// run: remarks, copies, run
graph(%x: f32[4], %y: f32[1, 4]) {
  %a: f32[4] = aten.mul.Tensor(%x, 2)
  %c: f32[1, 4] = aten.add.Tensor(%a, %y)
  %d: f32[1, 4] = aten.flip.default(%c, [-1])
  return %d
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 16 bytes
// %c = aten.add.Tensor(%a, %y)
//   computed in a dying operand, %a: taken, 16 bytes
// %d = aten.flip.default(%c, [-1])
//   computed in the output's memory: taken, 16 bytes

// == copies
// none

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// input 1: f32[1, 4][4, 1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[1, 4][4, 1]+0 = [9.0 6.0 3.0 0.0]
