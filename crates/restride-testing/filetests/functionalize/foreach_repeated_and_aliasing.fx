// A list with one tensor twice and with views of each other: members are written in order.
// run: functionalize, run
graph(%x: f32[4], %y: f32[2]) {
  %p: f32[2]+1 = aten.slice.Tensor(%x, 0, 1, 3)
  aten._foreach_add_.List([%p, %y, %p], [%y, %p, %y])
  aten._foreach_mul_.ScalarList([%x, %p], [2, 3])
  return %p, %y
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: mutation of %y
// output 2: user as view f32[2]+1 of input %x
// output 3: user as view f32[2] of input %y
//
// graph(%x: f32[4], %y: f32[2]) {
//   %p: f32[2]+1 = aten.slice.Tensor(%x, 0, 1, 3)
//   %add: f32[2]+1 = aten.add.Tensor(%p, %y)
//   %v: f32[4] = aten.slice_scatter.default(%x, %add, 0, 1, 3)
//   %add_1: f32[2] = aten.add.Tensor(%y, %add)
//   %add_2: f32[2]+1 = aten.add.Tensor(%add, %add_1)
//   %v_1: f32[4] = aten.slice_scatter.default(%v, %add_2, 0, 1, 3)
//   %mul: f32[4] = aten.mul.Scalar(%v_1, 2)
//   %v_2: f32[2]+1 = aten.slice.Tensor(%mul, 0, 1, 3)
//   %mul_1: f32[2]+1 = aten.mul.Scalar(%v_2, 3)
//   %v_3: f32[4] = aten.slice_scatter.default(%mul, %mul_1, 0, 1, 3)
//   return %v_3, %add_1, %mul_1, %add_1
// }

// == run
// input 0: f32[4][1]+0 = [0.0 12.0 42.0 6.0]
// input 1: f32[2][1]+0 = [1.0 4.0]
// output 0: f32[2][1]+1 = [12.0 42.0], on the storage of input 0
// output 1: f32[2][1]+0 = [1.0 4.0], on the storage of input 1
