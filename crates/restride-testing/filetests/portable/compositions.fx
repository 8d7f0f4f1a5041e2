// What is composed is said by core operators; what has no core form (lgamma) stays.
// run: portable
graph(%x: f32[2, 3, 4], %w: f32[5, 4], %b: f32[5], %mask: bool[3, 5]) {
  %l: f32[2, 3, 5] = aten.linear.default(%x, %w, %b)
  %m: f32[2, 3, 5] = aten.masked_fill.Scalar(%l, %mask, -inf)
  %s: f32[2, 3, 5] = aten.softmax.int(%m, -1)
  %t: f32[2, 5, 3][15, 1, 5] = aten.transpose.int(%s, 1, 2)
  %f: f32[2, 15] = aten.flatten.using_ints(%t, 1)
  %g: f32[2, 15] = aten.lgamma.default(%f)
  return %g
}

// == portable
// stage: functional
//
// graph(%x: f32[2, 3, 4], %w: f32[5, 4], %b: f32[5], %mask: bool[3, 5]) {
//   %l: f32[6, 4] = aten.view.default(%x, [6, 4])
//   %l_1: f32[4, 5][1, 4] = aten.permute.default(%w, [1, 0])
//   %l_2: f32[6, 5] = aten.addmm.default(%b, %l, %l_1)
//   %l_4: f32[2, 3, 5] = aten.view.default(%l_2, [2, 3, 5])
//   %m: f32[] = aten.full.default([], -inf, dtype=f32)
//   %m_2: f32[2, 3, 5] = aten.where.self(%mask, %m, %l_4)
//   %s_1: f32[2, 3, 5] = aten._softmax.default(%m_2, -1, False)
//   %permute: f32[2, 5, 3][15, 1, 5] = aten.permute.default(%s_1, [0, 2, 1])
//   %f: f32[2, 5, 3] = aten.clone.default(%permute, memory_format=contiguous_format)
//   %f_1: f32[2, 15] = aten.view.default(%f, [2, 15])
//   %g: f32[2, 15] = aten.lgamma.default(%f_1)
//   return %g
// }
