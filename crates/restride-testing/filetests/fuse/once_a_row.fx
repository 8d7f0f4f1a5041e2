// run: fuse by default
// %w is computed once a row, and no sum makes rows: it stays out of the group of %low and %high, with siblings and without.
graph(%x: f32[4, 91], %d: f32[4, 91], %a: f32[4, 1], %b: f32[4, 1]) {
  %w: f32[4, 1] = aten.sub.Tensor(%a, %b)
  %e: f32[4, 91] = aten.exp.default(%d)
  %s: f32[4, 91] = aten.mul.Tensor(%e, %w)
  %h: f32[4, 91] = aten.mul.Tensor(%x, %w)
  %low: f32[4, 91] = aten.sub.Tensor(%h, %s)
  %high: f32[4, 91] = aten.add.Tensor(%h, %s)
  return %low, %high
}

// == fuse by default
// graph(%x: f32[4, 91], %d: f32[4, 91], %a: f32[4, 1], %b: f32[4, 1]) {
//   %w: f32[4, 1] = aten.sub.Tensor(%a, %b)
//   %low: f32[4, 91], %high: f32[4, 91] = restride.fused.default(@graph1, [%d, %w, %x])
//   return %low, %high
// }
//
// graph @graph1(%d: f32[4, 91], %w: f32[4, 1], %x: f32[4, 91]) {
//   %e: f32[4, 91] = aten.exp.default(%d)
//   %s: f32[4, 91] = aten.mul.Tensor(%e, %w)
//   %h: f32[4, 91] = aten.mul.Tensor(%x, %w)
//   %low: f32[4, 91] = aten.sub.Tensor(%h, %s)
//   %high: f32[4, 91] = aten.add.Tensor(%h, %s)
//   return %low, %high
// }
