// A region that has cells twice has no form by indices: what is written last would be open. It stays as it is.
// run: written, portable
stage: functional
graph(%x: f32[3, 5], %v: f32[2, 2]) {
  %twice: f32[3, 5] = aten.as_strided_scatter.default(%x, %v, [2, 2], [1, 1], 0)
  return %twice
}

// == written
// graph(%x: f32[3, 5], %v: f32[2, 2]) {
//   %twice: f32[3, 5] = aten.as_strided_scatter.default(%x, %v, [2, 2], [1, 1], 0)
//   return %twice
// }

// == portable
// graph(%x: f32[3, 5], %v: f32[2, 2]) {
//   %twice: f32[3, 5] = aten.as_strided_scatter.default(%x, %v, [2, 2], [1, 1], 0)
//   return %twice
// }
