// The result has more elements than the operand that dies.
// run: remarks, copies, run
graph(%x: f32[3], %y: f32[2, 3]) {
  %a: f32[3] = aten.mul.Tensor(%x, 2)
  %b: f32[2, 3] = aten.add.Tensor(%a, %y)
  %c: f32[2, 3] = aten.flip.default(%b, [-1])
  return %c
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 12 bytes
// %b = aten.add.Tensor(%a, %y)
//   not computed in its operand, %a: sizes differ, 24 bytes
// %c = aten.flip.default(%b, [-1])
//   computed in the output's memory: taken, 24 bytes

// == copies
// none

// == run
// input 0: f32[3][1]+0 = [0.0 1.0 2.0]
// input 1: f32[2, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// output 0: f32[2, 3][3, 1]+0 = [6.0 3.0 0.0 9.0 6.0 3.0]
