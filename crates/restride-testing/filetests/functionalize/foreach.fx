// _foreach_ operators write their members in order.
// run: functionalize, run
graph(%x: f32[4]) {
  %p: f32[2] = aten.slice.Tensor(%x, 0, 0, 2)
  aten._foreach_add_.Scalar([%p, %x], 1)
  return %p
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: user as view f32[2] of input %x
//
// graph(%x: f32[4]) {
//   %p: f32[2] = aten.slice.Tensor(%x, 0, 0, 2)
//   %add: f32[2] = aten.add.Scalar(%p, 1)
//   %v: f32[4] = aten.slice_scatter.default(%x, %add, 0, 0, 2)
//   %add_1: f32[4] = aten.add.Scalar(%v, 1)
//   %v_1: f32[2] = aten.slice.Tensor(%add_1, 0, 0, 2)
//   return %add_1, %v_1
// }

// == run
// input 0: f32[4][1]+0 = [2.0 3.0 3.0 4.0]
// output 0: f32[2][1]+0 = [2.0 3.0], on the storage of input 0
