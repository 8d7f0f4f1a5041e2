// Two grids that interleave without meeting stay apart.
// run: functionalize, run
// share: %x %y
graph(%x: f32[3, 2][10, 4], %y: f32[3, 2][10, 4]+22) {
  %w: f32[3, 2][10, 4] = aten.add_.Tensor(%x, 100)
  %s: f32[] = aten.sum.default(%y)
  return %s
}

// == functionalize
// output 0: mutation of %x
//
// graph(%x: f32[3, 2][10, 4], %y: f32[3, 2][10, 4]+22) {
//   %w: f32[3, 2][10, 4] = aten.add.Tensor(%x, 100)
//   %s: f32[] = aten.sum.default(%y)
//   return %w, %s
// }

// == run
// input 0: f32[3, 2][10, 4]+0 = [100.0 104.0 110.0 114.0 120.0 124.0]
// input 1: f32[3, 2][10, 4]+22 = [22.0 26.0 32.0 36.0 42.0 46.0], on the storage of input 0
// output 0: f32[][]+0 = [204.0]
