// One part of a split is still read; the other is taken over.
// run: remarks, copies, run
graph(%x: f32[6]) {
  %a: f32[6] = aten.mul.Tensor(%x, 2)
  %p: f32[3], %q: f32[3]+3 = aten.split.Tensor(%a, 3)
  %b: f32[3] = aten.add.Tensor(%p, 1)
  %c: f32[3] = aten.mul.Tensor(%b, %q)
  %d: f32[3] = aten.flip.default(%c, [-1])
  return %d
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 24 bytes
// %p, %q = aten.split.Tensor(%a, 3)
//   kept as a view of its base, %a: taken, 24 bytes
// %b = aten.add.Tensor(%p, 1)
//   computed in a dying operand, %p: taken, 12 bytes
// %c = aten.mul.Tensor(%b, %q)
//   computed in a dying operand, %b: taken, 12 bytes
// %d = aten.flip.default(%c, [-1])
//   computed in the output's memory: taken, 12 bytes

// == copies
// none

// == run
// input 0: f32[6][1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// output 0: f32[3][1]+0 = [50.0 24.0 6.0]
