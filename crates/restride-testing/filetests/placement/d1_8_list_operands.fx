// An operator over a list: each member on its operand.
// run: remarks, copies, run
graph(%x: f32[2], %y: f32[3]) {
  %a: f32[2] = aten.mul.Tensor(%x, 2)
  %b: f32[3] = aten.mul.Tensor(%y, 2)
  %p: f32[2], %q: f32[3] = aten._foreach_add.Scalar([%a, %b], 1)
  %d: f32[2] = aten.flip.default(%p, [-1])
  %e: f32[3] = aten.flip.default(%q, [-1])
  return %d, %e
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 8 bytes
// %b = aten.mul.Tensor(%y, 2)
//   not computed in its operand, %y: the caller can see that memory, 12 bytes
// %p_2 = aten.add.Scalar(%a, 1)
//   computed in a dying operand, %a: taken, 8 bytes
// %q = aten.add.Scalar(%b, 1)
//   computed in a dying operand, %b: taken, 12 bytes
// %d = aten.flip.default(%p_2, [-1])
//   computed in the output's memory: taken, 8 bytes
// %e = aten.flip.default(%q, [-1])
//   computed in the output's memory: taken, 12 bytes

// == copies
// none

// == run
// input 0: f32[2][1]+0 = [0.0 1.0]
// input 1: f32[3][1]+0 = [0.0 1.0 2.0]
// output 0: f32[2][1]+0 = [3.0 1.0]
// output 1: f32[3][1]+0 = [5.0 3.0 1.0]
