// Several elements of the operand are in one cell: nothing is written there.
// run: remarks, copies, run
graph(%x: f32[1], %y: f32[4]) {
  %a: f32[1] = aten.mul.Tensor(%x, 2)
  %e: f32[4][0] = aten.expand.default(%a, [4])
  %b: f32[4] = aten.add.Tensor(%e, %y)
  %c: f32[4] = aten.flip.default(%b, [-1])
  return %c
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 4 bytes
// %e = aten.expand.default(%a, [4])
//   kept as a view of its base, %a: taken, 16 bytes
// %b = aten.add.Tensor(%e, %y)
//   not computed in its operand, %e: several elements share a cell, 16 bytes
// %c = aten.flip.default(%b, [-1])
//   computed in the output's memory: taken, 16 bytes

// == copies
// none

// == run
// input 0: f32[1][1]+0 = [0.0]
// input 1: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[4][1]+0 = [3.0 2.0 1.0 0.0]
