// The first operand is broadcast over the second, which fits.
// run: remarks, copies, run
graph(%x: f32[3], %y: f32[2, 3]) {
  %r: f32[3] = aten.mul.Tensor(%x, 2)
  %a: f32[2, 3] = aten.mul.Tensor(%y, 2)
  %b: f32[2, 3] = aten.sub.Tensor(%r, %a)
  %d: f32[2, 3] = aten.flip.default(%b, [-1])
  return %d
}

// == remarks
// %r = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 12 bytes
// %a = aten.mul.Tensor(%y, 2)
//   not computed in its operand, %y: the caller can see that memory, 24 bytes
// %b = aten.sub.Tensor(%r, %a)
//   computed in a dying operand, %a: taken, 24 bytes
// %d = aten.flip.default(%b, [-1])
//   computed in the output's memory: taken, 24 bytes

// == copies
// none

// == run
// input 0: f32[3][1]+0 = [0.0 1.0 2.0]
// input 1: f32[2, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// output 0: f32[2, 3][3, 1]+0 = [0.0 0.0 0.0 -6.0 -6.0 -6.0]
