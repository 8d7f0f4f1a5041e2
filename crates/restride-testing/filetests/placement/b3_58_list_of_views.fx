// Views of one tensor are written as members of a list.
// run: remarks, copies, run
graph(%x: f32[4]) {
  %a: f32[4] = aten.mul.Tensor(%x, 2)
  %p: f32[2] = aten.slice.Tensor(%a, 0, 0, 2)
  %q: f32[2]+2 = aten.slice.Tensor(%a, 0, 2, 4)
  aten._foreach_add_.Scalar([%p, %q], 1)
  %d: f32[4] = aten.flip.default(%a, [-1])
  return %d
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 16 bytes
// %p = aten.slice.Tensor(%a, 0, 0, 2)
//   kept as a view of its base, %a: taken, 8 bytes
// %add = aten.add.Scalar(%p, 1)
//   source computed in its region, %a: taken, 8 bytes
// %add = aten.add.Scalar(%p, 1)
//   computed in a dying operand, %p: taken, 8 bytes
// %v = aten.slice_scatter.default(%a, %add, 0, 0, 2)
//   scatter written into its base, %a: taken, 16 bytes
// %q = aten.slice.Tensor(%v, 0, 2, 4)
//   kept as a view of its base, %v: taken, 8 bytes
// %add_1 = aten.add.Scalar(%q, 1)
//   source computed in its region, %v: taken, 8 bytes
// %add_1 = aten.add.Scalar(%q, 1)
//   computed in a dying operand, %q: taken, 8 bytes
// %v_1 = aten.slice_scatter.default(%v, %add_1, 0, 2, 4)
//   scatter written into its base, %v: taken, 16 bytes
// %d = aten.flip.default(%v_1, [-1])
//   computed in the output's memory: taken, 16 bytes

// == copies
// none

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[4][1]+0 = [7.0 5.0 3.0 1.0]
