// A running sum over its operand.
// run: remarks, copies, run
graph(%x: f32[2, 4]) {
  %a: f32[2, 4] = aten.mul.Tensor(%x, 2)
  %b: f32[2, 4] = aten.cumsum.default(%a, 1)
  %d: f32[2, 4] = aten.flip.default(%b, [-1])
  return %d
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 32 bytes
// %d = aten.flip.default(%b, [-1])
//   computed in the output's memory: taken, 32 bytes

// == copies
// none

// == run
// input 0: f32[2, 4][4, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0]
// output 0: f32[2, 4][4, 1]+0 = [12.0 6.0 2.0 0.0 44.0 30.0 18.0 8.0]
