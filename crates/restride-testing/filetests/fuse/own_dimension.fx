// run: fuse by default
// A root mean square is one group: the sum goes along the row of the last output, not along a dimension of its own.
graph(%x: f32[4, 96], %w: f32[96]) {
  %square: f32[4, 96] = aten.pow.Tensor_Scalar(%x, 2)
  %mean: f32[4, 1] = aten.mean.dim(%square, [-1], True)
  %eps: f32[4, 1] = aten.add.Scalar(%mean, 1e-6)
  %scale: f32[4, 1] = aten.rsqrt.default(%eps)
  %y: f32[4, 96] = aten.mul.Tensor(%x, %scale)
  %z: f32[4, 96] = aten.mul.Tensor(%y, %w)
  return %z
}

// == fuse by default
// graph(%x: f32[4, 96], %w: f32[96]) {
//   %z: f32[4, 96] = restride.fused.default(@graph1, [%x, %w])
//   return %z
// }
//
// graph @graph1(%x: f32[4, 96], %w: f32[96]) {
//   %square: f32[4, 96] = aten.pow.Tensor_Scalar(%x, 2)
//   %mean: f32[4, 1] = aten.mean.dim(%square, [-1], True)
//   %eps: f32[4, 1] = aten.add.Scalar(%mean, 1e-6)
//   %scale: f32[4, 1] = aten.rsqrt.default(%eps)
//   %y: f32[4, 96] = aten.mul.Tensor(%x, %scale)
//   %z: f32[4, 96] = aten.mul.Tensor(%y, %w)
//   return %z
// }
