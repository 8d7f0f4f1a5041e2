// What is random draws again what it drew: its key stays.
// run: recompute
// most: 8192
graph(%x: f32[1024]) {
  %r: f32[1024] = aten.rand_like.default(%x)
  %a: f32[1024] = aten.mul.Tensor(%x, %r)
  %b: f32[1024] = aten.sigmoid.default(%a)
  %c: f32[1024] = aten.cos.default(%b)
  %d: f32[1024] = aten.mul.Tensor(%c, %b)
  %e: f32[1024] = aten.mul.Tensor(%d, %r)
  %f: f32[] = aten.sum.default(%e)
  return %f
}

// == recompute
// graph(%x: f32[1024]) {
//   %r: f32[1024] = aten.rand_like.default(%x) !key 0
//   %a: f32[1024] = aten.mul.Tensor(%x, %r)
//   %b: f32[1024] = aten.sigmoid.default(%a)
//   %c: f32[1024] = aten.cos.default(%b)
//   %d: f32[1024] = aten.mul.Tensor(%c, %b)
//   %r_1: f32[1024] = aten.rand_like.default(%x) !key 0
//   %e: f32[1024] = aten.mul.Tensor(%d, %r_1)
//   %f: f32[] = aten.sum.default(%e)
//   return %f
// }
// %r_1 = aten.rand_like.default(%x)
//   recomputed, %r: 4096 bytes
// at most 8192 bytes at once instead of 12288
