// Both operands are one tensor: each element is read before it is written, so its memory may be taken over.
// run: remarks, copies, run
graph(%x: f32[4]) {
  %a: f32[4] = aten.mul.Tensor(%x, 2)
  %b: f32[4] = aten.add.Tensor(%a, %a)
  %c: f32[4] = aten.flip.default(%b, [-1])
  return %c
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 16 bytes
// %b = aten.add.Tensor(%a, %a)
//   computed in a dying operand, %a: taken, 16 bytes
// %c = aten.flip.default(%b, [-1])
//   computed in the output's memory: taken, 16 bytes

// == copies
// none

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[4][1]+0 = [12.0 8.0 4.0 0.0]
