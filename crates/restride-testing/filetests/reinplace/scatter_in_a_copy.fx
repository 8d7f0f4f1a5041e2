// The base is an input that stays as it is: the write goes into a copy of it.
// run: reinplace, run
graph(%x: f32[3, 4]) {
  %c: f32[3, 4] = aten.clone.default(%x)
  %a: f32[4] = aten.select.int(%c, 0, 0)
  %m: f32[4] = aten.flip.default(%a, [0])
  %y: f32[3, 4] = aten.select_scatter.default(%c, %m, 0, 0)
  return %y
}

// == reinplace
// graph(%x: f32[3, 4]) {
//   %a: f32[4] = aten.select.int(%x, 0, 0)
//   %m: f32[4] = aten.flip.default(%a, [0])
//   %x_laid_out: f32[3, 4] = aten.clone.default(%x, memory_format=contiguous_format)
//   %y_region: f32[4] = aten.select.int(%x_laid_out, 0, 0)
//   %y_region_1: f32[4] = aten.copy_.default(%y_region, %m)
//   return %x_laid_out
// }

// == run
// input 0: f32[3, 4][4, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0]
// output 0: f32[3, 4][4, 1]+0 = [3.0 2.0 1.0 0.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0]
