// A constant of the program is used where it is, and never written.
// run: remarks, copies, run
weight "c": f32[4] storage 0
input %c: constant "c"
graph(%c: f32[4], %x: f32[4]) {
  %v: f32[2] = aten.slice.Tensor(%c, 0, 0, 2)
  %b: f32[2] = aten.add.Tensor(%v, 1)
  %k: f32[4] = aten.mul.Tensor(%c, %x)
  %d: f32[2] = aten.flip.default(%b, [-1])
  %e: f32[4] = aten.flip.default(%k, [-1])
  return %d, %e
}

// == remarks
// %v = aten.slice.Tensor(%c, 0, 0, 2)
//   kept as a view of its base, %c: taken, 8 bytes
// %b = aten.add.Tensor(%v, 1)
//   not computed in its operand, %v: the caller can see that memory, 8 bytes
// %k = aten.mul.Tensor(%c, %x)
//   not computed in its operand, %c: the caller can see that memory, 16 bytes
// %d = aten.flip.default(%b, [-1])
//   computed in the output's memory: taken, 8 bytes
// %e = aten.flip.default(%k, [-1])
//   computed in the output's memory: taken, 16 bytes

// == copies
// none

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// c: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[2][1]+0 = [2.0 1.0]
// output 1: f32[4][1]+0 = [9.0 4.0 1.0 0.0]
