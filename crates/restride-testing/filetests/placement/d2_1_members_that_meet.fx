// Members of a list that meet are written one after the other.
// run: remarks, copies, run
graph(%x: f32[5]) {
  %a: f32[5] = aten.mul.Tensor(%x, 2)
  %p: f32[3] = aten.slice.Tensor(%a, 0, 0, 3)
  %q: f32[3]+2 = aten.slice.Tensor(%a, 0, 2, 5)
  aten._foreach_mul_.Scalar([%p, %q], 3)
  %d: f32[5] = aten.flip.default(%a, [-1])
  return %d
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 20 bytes
// %p = aten.slice.Tensor(%a, 0, 0, 3)
//   kept as a view of its base, %a: taken, 12 bytes
// %mul = aten.mul.Scalar(%p, 3)
//   source computed in its region, %a: taken, 12 bytes
// %mul = aten.mul.Scalar(%p, 3)
//   computed in a dying operand, %p: taken, 12 bytes
// %v = aten.slice_scatter.default(%a, %mul, 0, 0, 3)
//   scatter written into its base, %a: taken, 20 bytes
// %v_1 = aten.slice.Tensor(%v, 0, 2, 5)
//   kept as a view of its base, %v: taken, 12 bytes
// %mul_1 = aten.mul.Scalar(%v_1, 3)
//   source computed in its region, %v: taken, 12 bytes
// %mul_1 = aten.mul.Scalar(%v_1, 3)
//   computed in a dying operand, %v_1: taken, 12 bytes
// %v_2 = aten.slice_scatter.default(%v, %mul_1, 0, 2, 5)
//   scatter written into its base, %v: taken, 20 bytes
// %d = aten.flip.default(%v_2, [-1])
//   computed in the output's memory: taken, 20 bytes

// == copies
// none

// == run
// input 0: f32[5][1]+0 = [0.0 1.0 2.0 3.0 4.0]
// output 0: f32[5][1]+0 = [24.0 18.0 36.0 6.0 0.0]
