// A user's operator is called on the memory itself where nothing else reads it: of a whole, of views, of a list.
// ops: files::twice(Tensor(a!) x, Tensor y) -> ()
// ops: files::each(Tensor(a!)[] xs, Tensor(b!)? z) -> Tensor
// run: reinplace

graph(%a: f32[3, 4], %b: f32[4]) {
  %m: f32[3, 4] = aten.mul.Tensor(%a, 2)
  files.twice.default(%m, %b)
  %r: f32[4]+4 = aten.select.int(%m, 0, 1)
  files.twice.default(%r, %b)
  %s: f32[4] = aten.select.int(%m, 0, 0)
  %n: f32[4] = aten.mul.Tensor(%b, 3)
  %t: f32[4] = files.each.default([%r, %n, %s], %a)
  return %m, %n, %t
}

// == reinplace
// graph(%a: f32[3, 4], %b: f32[4]) {
//   %m: f32[3, 4] = aten.mul.Tensor(%a, 2)
//   files.twice.default(%m, %b)
//   %m_region: f32[4]+4 = aten.as_strided.default(%m, [4], [1], 4)
//   files.twice.default(%m_region, %b)
//   %n: f32[4] = aten.mul.Tensor(%b, 3)
//   %m_region_1: f32[4]+4 = aten.as_strided.default(%m, [4], [1], 4)
//   %m_region_2: f32[4] = aten.as_strided.default(%m, [4], [1], 0)
//   %t: f32[4] = files.each.default([%m_region_1, %n, %m_region_2], %a)
//   return %m, %n, %t
// }
