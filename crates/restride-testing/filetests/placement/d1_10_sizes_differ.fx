// As many elements in all do not make the sizes fit: not over either operand.
// run: remarks, copies, run
graph(%x: f32[3, 1], %y: f32[1, 3]) {
  %a: f32[3, 1] = aten.mul.Tensor(%x, 2)
  %b: f32[1, 3] = aten.mul.Tensor(%y, 2)
  %c: f32[3, 3] = aten.add.Tensor(%a, %b)
  %d: f32[3, 3] = aten.flip.default(%c, [-1])
  return %d
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 12 bytes
// %b = aten.mul.Tensor(%y, 2)
//   not computed in its operand, %y: the caller can see that memory, 12 bytes
// %c = aten.add.Tensor(%a, %b)
//   not computed in its operand, %a: sizes differ, 36 bytes
// %d = aten.flip.default(%c, [-1])
//   computed in the output's memory: taken, 36 bytes

// == copies
// none

// == run
// input 0: f32[3, 1][1, 1]+0 = [0.0 1.0 2.0]
// input 1: f32[1, 3][3, 1]+0 = [0.0 1.0 2.0]
// output 0: f32[3, 3][3, 1]+0 = [4.0 2.0 0.0 6.0 4.0 2.0 8.0 6.0 4.0]
