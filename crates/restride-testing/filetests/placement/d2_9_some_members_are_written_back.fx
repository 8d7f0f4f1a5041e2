// A list of an input that is written, one that is only read, and an intermediate: member by member.
// run: remarks, copies, run
graph(%x: f32[2], %y: f32[3], %z: f32[4]) {
  %a: f32[4] = aten.mul.Tensor(%z, 2)
  %p: f32[2], %q: f32[3], %r: f32[4] = aten._foreach_add.Scalar([%x, %y, %a], 1)
  %w: f32[2] = aten.copy_.default(%x, %p)
  %d: f32[3] = aten.flip.default(%q, [-1])
  %e: f32[4] = aten.flip.default(%r, [-1])
  return %d, %e
}

// == remarks
// %a = aten.mul.Tensor(%z, 2)
//   not computed in its operand, %z: the caller can see that memory, 16 bytes
// %p_3 = aten.add.Scalar(%x, 1)
//   computed in the input's memory, %x: taken, 8 bytes
// %p_3 = aten.add.Scalar(%x, 1)
//   computed in a dying operand, %x: taken, 8 bytes
// %q = aten.add.Scalar(%y, 1)
//   not computed in its operand, %y: the caller can see that memory, 12 bytes
// %r = aten.add.Scalar(%a, 1)
//   computed in a dying operand, %a: taken, 16 bytes
// %d = aten.flip.default(%q, [-1])
//   computed in the output's memory: taken, 12 bytes
// %e = aten.flip.default(%r, [-1])
//   computed in the output's memory: taken, 16 bytes

// == copies
// none

// == run
// input 0: f32[2][1]+0 = [1.0 2.0]
// input 1: f32[3][1]+0 = [0.0 1.0 2.0]
// input 2: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[3][1]+0 = [3.0 2.0 1.0]
// output 1: f32[4][1]+0 = [7.0 5.0 3.0 1.0]
