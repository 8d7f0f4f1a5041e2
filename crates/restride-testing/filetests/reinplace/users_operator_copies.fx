// What is read after the call, or by it, is copied before; a copy goes straight to the input that the content is for.
// ops: files::twice(Tensor(a!) x, Tensor y) -> ()
// run: reinplace

graph(%a: f32[3, 4], %b: f32[3, 4], %c: f32[3, 4]) {
  %m: f32[3, 4] = aten.mul.Tensor(%a, 2)
  %k: f32[3, 4] = aten.clone.default(%m)
  files.twice.default(%k, %m)
  %s: f32[3, 4] = aten.add.Tensor(%k, %m)
  %d: f32[3, 4] = aten.copy_.default(%c, %b)
  files.twice.default(%c, %s)
  return %s
}

// == reinplace
// graph(%a: f32[3, 4], %b: f32[3, 4], %c: f32[3, 4]) {
//   %m: f32[3, 4] = aten.mul.Tensor(%a, 2)
//   %m_laid_out: f32[3, 4] = aten.clone.default(%m, memory_format=contiguous_format)
//   files.twice.default(%m_laid_out, %m)
//   %s: f32[3, 4] = aten.add_.Tensor(%m_laid_out, %m)
//   %c_1: f32[3, 4] = aten.copy_.default(%c, %b)
//   files.twice.default(%c, %s)
//   return %s
// }
