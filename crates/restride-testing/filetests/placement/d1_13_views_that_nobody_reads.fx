// Unread views are no steps and hold no memory.
// run: remarks, copies, run
graph(%x: f32[4, 2]) {
  %a: f32[4, 2] = aten.mul.Tensor(%x, 2)
  %v: f32[8] = aten.view.default(%a, [8])
  %t: f32[2, 4][1, 2] = aten.t.default(%a)
  %b: f32[4, 2] = aten.add.Tensor(%a, 1)
  %u: f32[4, 2] = aten.t.default(%t)
  %d: f32[4, 2] = aten.flip.default(%b, [-1])
  return %d
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 32 bytes
// %b = aten.add.Tensor(%a, 1)
//   computed in a dying operand, %a: taken, 32 bytes
// %d = aten.flip.default(%b, [-1])
//   computed in the output's memory: taken, 32 bytes

// == copies
// none

// == run
// input 0: f32[4, 2][2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0]
// output 0: f32[4, 2][2, 1]+0 = [3.0 1.0 7.0 5.0 11.0 9.0 15.0 13.0]
