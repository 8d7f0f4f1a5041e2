// What is declined is counted, with its bytes.
// run: remarks, copies, run
graph(%x: f32[4, 2]) {
  %a: f32[4, 2] = aten.mul.Tensor(%x, 2)
  %b: f32[4, 2] = aten.add.Tensor(%a, 1)
  %c: f32[4, 2] = aten.mul.Tensor(%b, %a)
  %d: f32[4, 2] = aten.flip.default(%a, [-1])
  %e: f32[4, 2] = aten.flip.default(%c, [-1])
  return %d, %e
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 32 bytes
// %b = aten.add.Tensor(%a, 1)
//   not computed in its operand, %a: still read by %c = aten.mul.Tensor(%b, %a), 32 bytes
// %c = aten.mul.Tensor(%b, %a)
//   computed in a dying operand, %b: taken, 32 bytes
// %d = aten.flip.default(%a, [-1])
//   computed in the output's memory: taken, 32 bytes
// %e = aten.flip.default(%c, [-1])
//   computed in the output's memory: taken, 32 bytes

// == copies
// none

// == run
// input 0: f32[4, 2][2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0]
// output 0: f32[4, 2][2, 1]+0 = [2.0 0.0 6.0 4.0 10.0 8.0 14.0 12.0]
// output 1: f32[4, 2][2, 1]+0 = [6.0 0.0 42.0 20.0 110.0 72.0 210.0 156.0]
