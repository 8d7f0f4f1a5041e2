// run: fuse by default
// A cast of an image's bytes is part of what reads it.
graph(%x: u8[2, 3, 8, 16], %mean: f32[3, 1, 1]) {
  %f: f32[2, 3, 8, 16] = aten.to.dtype(%x, f32)
  %d: f32[2, 3, 8, 16] = aten.div.Tensor(%f, 255)
  %y: f32[2, 3, 8, 16] = aten.sub.Tensor(%d, %mean)
  return %y
}

// == fuse by default
// graph(%x: u8[2, 3, 8, 16], %mean: f32[3, 1, 1]) {
//   %y: f32[2, 3, 8, 16] = restride.fused.default(@graph1, [%x, %mean])
//   return %y
// }
//
// graph @graph1(%x: u8[2, 3, 8, 16], %mean: f32[3, 1, 1]) {
//   %f_1: f32[2, 3, 8, 16] = aten._to_copy.default(%x, dtype=f32)
//   %d: f32[2, 3, 8, 16] = aten.div.Tensor(%f_1, 255)
//   %y: f32[2, 3, 8, 16] = aten.sub.Tensor(%d, %mean)
//   return %y
// }
