// A fresh tensor filled by an out= form from an operand that dies.
// run: remarks, copies, run
graph(%x: f32[4]) {
  %a: f32[4] = aten.mul.Tensor(%x, 2)
  %o: f32[4] = aten.empty.memory_format([4], dtype=f32)
  %b: f32[4] = aten.neg.out(%a, out=%o)
  %d: f32[4] = aten.flip.default(%o, [-1])
  return %d
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 16 bytes
// %b = aten.neg.default(%a)
//   computed in a dying operand, %a: taken, 16 bytes
// %d = aten.flip.default(%b, [-1])
//   computed in the output's memory: taken, 16 bytes

// == copies
// none

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[4][1]+0 = [-6.0 -4.0 -2.0 -0.0]
