// Members of a list on one storage that do not meet are all written in place.
// run: remarks, copies, run
graph(%x: f32[6], %y: f32[2]) {
  %a: f32[6] = aten.mul.Tensor(%x, 2)
  %b: f32[2] = aten.mul.Tensor(%y, 2)
  %p: f32[3] = aten.slice.Tensor(%a, 0, 0, 3)
  %q: f32[3]+3 = aten.slice.Tensor(%a, 0, 3, 6)
  aten._foreach_mul_.Scalar([%p, %b, %q], 3)
  %d: f32[6] = aten.flip.default(%a, [-1])
  %e: f32[2] = aten.flip.default(%b, [-1])
  return %d, %e
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 24 bytes
// %b = aten.mul.Tensor(%y, 2)
//   not computed in its operand, %y: the caller can see that memory, 8 bytes
// %p = aten.slice.Tensor(%a, 0, 0, 3)
//   kept as a view of its base, %a: taken, 12 bytes
// %mul = aten.mul.Scalar(%p, 3)
//   source computed in its region, %a: taken, 12 bytes
// %mul = aten.mul.Scalar(%p, 3)
//   computed in a dying operand, %p: taken, 12 bytes
// %v = aten.slice_scatter.default(%a, %mul, 0, 0, 3)
//   scatter written into its base, %a: taken, 24 bytes
// %mul_1 = aten.mul.Scalar(%b, 3)
//   computed in a dying operand, %b: taken, 8 bytes
// %q = aten.slice.Tensor(%v, 0, 3, 6)
//   kept as a view of its base, %v: taken, 12 bytes
// %mul_2 = aten.mul.Scalar(%q, 3)
//   source computed in its region, %v: taken, 12 bytes
// %mul_2 = aten.mul.Scalar(%q, 3)
//   computed in a dying operand, %q: taken, 12 bytes
// %v_1 = aten.slice_scatter.default(%v, %mul_2, 0, 3, 6)
//   scatter written into its base, %v: taken, 24 bytes
// %d = aten.flip.default(%v_1, [-1])
//   computed in the output's memory: taken, 24 bytes
// %e = aten.flip.default(%mul_1, [-1])
//   computed in the output's memory: taken, 8 bytes

// == copies
// none

// == run
// input 0: f32[6][1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// input 1: f32[2][1]+0 = [0.0 1.0]
// output 0: f32[6][1]+0 = [30.0 24.0 18.0 12.0 6.0 0.0]
// output 1: f32[2][1]+0 = [6.0 0.0]
