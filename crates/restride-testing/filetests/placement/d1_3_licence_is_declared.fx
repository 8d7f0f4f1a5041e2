// No in-place form carries this operator's name; its result is stored on either operand.
// run: remarks, copies, run
graph(%x: f32[4], %y: f32[4]) {
  %a: f32[4] = aten.mul.Tensor(%x, 2)
  %b: f32[4] = aten.maximum.default(%y, %a)
  %d: f32[4] = aten.flip.default(%b, [-1])
  return %d
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 16 bytes
// %b = aten.maximum.default(%y, %a)
//   computed in a dying operand, %a: taken, 16 bytes
// %d = aten.flip.default(%b, [-1])
//   computed in the output's memory: taken, 16 bytes

// == copies
// none

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// input 1: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[4][1]+0 = [6.0 4.0 2.0 0.0]
