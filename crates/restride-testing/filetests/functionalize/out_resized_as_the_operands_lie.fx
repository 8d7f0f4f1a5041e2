// A resized out= takes the strides of the result.
// run: functionalize, run
graph(%a: f32[2, 3][1, 2], %b: f32[2, 3][1, 2]) {
  %e: f32[0] = aten.empty.memory_format([0], dtype=f32)
  %r: f32[2, 3][1, 2] = aten.add.out(%a, %b, out=%e)
  %v: f32[6] = aten.as_strided.default(%e, [6], [1])
  return %e, %v
}

// == functionalize
// output 0: user as view f32[2, 3][1, 2] of base 2
// output 1: user as view f32[6] of base 2
// output 2: base
//
// graph(%a: f32[2, 3][1, 2], %b: f32[2, 3][1, 2]) {
//   %e: f32[0] = aten.empty.memory_format([0], dtype=f32)
//   %r: f32[2, 3][1, 2] = aten.add.Tensor(%a, %b)
//   %r_1: f32[6] = aten.constant_pad_nd.default(%e, [0, 6])
//   %r_2: f32[6] = aten.as_strided_scatter.default(%r_1, %r, [2, 3], [1, 2], 0)
//   return %r, %r_2, %r_2
// }

// == run
// input 0: f32[2, 3][1, 2]+0 = [0.0 2.0 4.0 1.0 3.0 5.0]
// input 1: f32[2, 3][1, 2]+0 = [0.0 2.0 4.0 1.0 3.0 5.0]
// output 0: f32[2, 3][1, 2]+0 = [0.0 4.0 8.0 2.0 6.0 10.0]
// output 1: f32[6][1]+0 = [0.0 2.0 4.0 6.0 8.0 10.0], on the storage of output 0
