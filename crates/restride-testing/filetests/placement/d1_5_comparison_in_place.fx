// The same, as a program that writes.
// run: remarks, copies, run
graph(%x: f32[4]) {
  %a: f32[4] = aten.mul.Tensor(%x, 2)
  %b: f32[4] = aten.ge_.Scalar(%a, 3)
  %d: f32[4] = aten.flip.default(%a, [-1])
  return %d
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 16 bytes
// %b = aten.ge.Scalar(%a, 3)
//   computed in a dying operand, %a: taken, 4 bytes
// %b_1 = aten._to_copy.default(%b, dtype=f32)
//   computed in a dying operand, %b: taken, 16 bytes
// %d = aten.flip.default(%b_1, [-1])
//   computed in the output's memory: taken, 16 bytes

// == copies
// none

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[4][1]+0 = [1.0 1.0 0.0 0.0]
