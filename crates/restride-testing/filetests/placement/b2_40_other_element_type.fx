// A comparison has smaller elements than its operand.
// run: remarks, copies, run
graph(%x: f32[4]) {
  %a: f32[4] = aten.mul.Tensor(%x, 2)
  %b: bool[4] = aten.ge.Scalar(%a, 3)
  %c: bool[4] = aten.flip.default(%b, [-1])
  return %c
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 16 bytes
// %b = aten.ge.Scalar(%a, 3)
//   not computed in its operand, %a: element sizes differ, 4 bytes
// %c = aten.flip.default(%b, [-1])
//   computed in the output's memory: taken, 4 bytes

// == copies
// none

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: bool[4][1]+0 = [true true false false]
