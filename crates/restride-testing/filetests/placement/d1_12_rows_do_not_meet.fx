// Rows of an unbind, each taken over while the others are still read.
// run: remarks, copies, run
graph(%x: f32[3, 2]) {
  %a: f32[3, 2] = aten.mul.Tensor(%x, 2)
  %p: f32[2], %q: f32[2]+2, %r: f32[2]+4 = aten.unbind.int(%a)
  %b: f32[2] = aten.add.Tensor(%p, 1)
  %c: f32[2] = aten.add.Tensor(%q, %b)
  %e: f32[2] = aten.mul.Tensor(%r, %c)
  %d: f32[2] = aten.flip.default(%e, [-1])
  return %d
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 24 bytes
// %p, %q, %r = aten.unbind.int(%a)
//   kept as a view of its base, %a: taken, 24 bytes
// %b = aten.add.Tensor(%p, 1)
//   computed in a dying operand, %p: taken, 8 bytes
// %c = aten.add.Tensor(%q, %b)
//   computed in a dying operand, %q: taken, 8 bytes
// %e = aten.mul.Tensor(%r, %c)
//   computed in a dying operand, %r: taken, 8 bytes
// %d = aten.flip.default(%e, [-1])
//   computed in the output's memory: taken, 8 bytes

// == copies
// none

// == run
// input 0: f32[3, 2][2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// output 0: f32[2][1]+0 = [90.0 40.0]
