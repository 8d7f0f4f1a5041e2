// _foreach_copy_ among parts of one tensor: each member sees what the one before left.
// run: functionalize, run
graph(%x: f32[4], %y: f32[2]) {
  %p: f32[2], %q: f32[2]+2 = aten.split.Tensor(%x, 2)
  aten._foreach_copy_.default([%p, %q], [%q, %y])
  aten._foreach_addcmul_.Scalar([%p, %q], [%q, %p], [%p, %p], 2)
  return %x
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: user as view f32[4] of input %x
//
// graph(%x: f32[4], %y: f32[2]) {
//   %p: f32[2], %q: f32[2]+2 = aten.split.Tensor(%x, 2)
//   %v: f32[4] = aten.slice_scatter.default(%x, %q, 0, 0, 2)
//   %v_1: f32[4] = aten.slice_scatter.default(%v, %y, 0, 2, 4)
//   %addcmul: f32[2] = aten.addcmul.default(%q, %y, %q, value=2)
//   %v_2: f32[4] = aten.slice_scatter.default(%v_1, %addcmul, 0, 0, 2)
//   %addcmul_1: f32[2]+2 = aten.addcmul.default(%y, %addcmul, %addcmul, value=2)
//   %v_3: f32[4] = aten.slice_scatter.default(%v_2, %addcmul_1, 0, 2, 4)
//   return %v_3, %v_3
// }

// == run
// input 0: f32[4][1]+0 = [2.0 9.0 8.0 163.0]
// input 1: f32[2][1]+0 = [0.0 1.0]
// output 0: f32[4][1]+0 = [2.0 9.0 8.0 163.0], on the storage of input 0
