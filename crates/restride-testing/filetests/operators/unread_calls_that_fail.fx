// Eager PyTorch fails in a call whatever reads its result, so no pass removes one that may fail on some elements.
// run: functionalize
graph(%x: f32[3, 3], %i: i64[2]) {
  %picked: f32[2, 3] = aten.index_select.default(%x, 0, %i)
  %twice: f32[2, 3] = aten.mul.Scalar(%picked, 2)
  %copy: f32[3, 3] = aten.clone.default(%x)
  %filled: f32[3, 3] = aten.index_fill_.int_Scalar(%copy, 0, %i, 1.0)
  %zeroed: f32[3, 3] = aten.zero_.default(%copy)
  %factor: f32[3, 3][1, 3] = aten.linalg_cholesky.default(%x)
  %quotient: i64[2] = aten.floor_divide.default(%i, %i)
  %half: i64[2] = aten.div.Tensor_mode(%i, 2, rounding_mode="floor")
  %sine: f32[3, 3] = aten.sin.default(%x)
  %out: f32[3, 3] = aten.cos.default(%zeroed)
  return %out
}

// == functionalize
// graph(%x: f32[3, 3], %i: i64[2]) {
//   %picked: f32[2, 3] = aten.index_select.default(%x, 0, %i)
//   %copy: f32[3, 3] = aten.clone.default(%x)
//   %filled: f32[3, 3] = aten.index_fill.int_Scalar(%copy, 0, %i, 1.0)
//   %zeroed: f32[3, 3] = aten.zero.default(%filled)
//   %factor: f32[3, 3][1, 3] = aten.linalg_cholesky.default(%x)
//   %quotient: i64[2] = aten.floor_divide.default(%i, %i)
//   %out: f32[3, 3] = aten.cos.default(%zeroed)
//   return %out
// }
