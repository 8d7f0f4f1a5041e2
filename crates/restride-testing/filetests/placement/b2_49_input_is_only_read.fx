// An input that the program does not write, and a view of it, stay as they are.
// run: remarks, copies, run
graph(%x: f32[2, 3]) {
  %v: f32[6] = aten.view.default(%x, [6])
  %a: f32[6] = aten.add.Tensor(%v, 1)
  %b: f32[2, 3] = aten.add.Tensor(%x, 2)
  %c: f32[6] = aten.flip.default(%a, [-1])
  %d: f32[2, 3] = aten.flip.default(%b, [-1])
  return %c, %d
}

// == remarks
// %v = aten.view.default(%x, [6])
//   kept as a view of its base, %x: taken, 24 bytes
// %a = aten.add.Tensor(%v, 1)
//   not computed in its operand, %v: the caller can see that memory, 24 bytes
// %b = aten.add.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 24 bytes
// %c = aten.flip.default(%a, [-1])
//   computed in the output's memory: taken, 24 bytes
// %d = aten.flip.default(%b, [-1])
//   computed in the output's memory: taken, 24 bytes

// == copies
// none

// == run
// input 0: f32[2, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// output 0: f32[6][1]+0 = [6.0 5.0 4.0 3.0 2.0 1.0]
// output 1: f32[2, 3][3, 1]+0 = [4.0 3.0 2.0 7.0 6.0 5.0]
