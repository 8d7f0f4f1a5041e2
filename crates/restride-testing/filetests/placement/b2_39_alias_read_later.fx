// A view of the operand is read later: the first sum must not lie there; the second, from the view, may.
// run: remarks, copies, run
graph(%x: f32[2, 3]) {
  %a: f32[2, 3] = aten.mul.Tensor(%x, 2)
  %v: f32[6] = aten.view.default(%a, [-1])
  %b: f32[2, 3] = aten.add.Tensor(%a, 1)
  %c: f32[6] = aten.add.Tensor(%v, 1)
  %d: f32[2, 3] = aten.flip.default(%b, [-1])
  %e: f32[6] = aten.flip.default(%c, [-1])
  return %d, %e
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 24 bytes
// %b = aten.add.Tensor(%a, 1)
//   not computed in its operand, %a: still read by %c = aten.add.Tensor(%v, 1), 24 bytes
// %v = aten.view.default(%a, [-1])
//   kept as a view of its base, %a: taken, 24 bytes
// %c = aten.add.Tensor(%v, 1)
//   computed in a dying operand, %v: taken, 24 bytes
// %d = aten.flip.default(%b, [-1])
//   computed in the output's memory: taken, 24 bytes
// %e = aten.flip.default(%c, [-1])
//   computed in the output's memory: taken, 24 bytes

// == copies
// none

// == run
// input 0: f32[2, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// output 0: f32[2, 3][3, 1]+0 = [5.0 3.0 1.0 11.0 9.0 7.0]
// output 1: f32[6][1]+0 = [11.0 9.0 7.0 5.0 3.0 1.0]
