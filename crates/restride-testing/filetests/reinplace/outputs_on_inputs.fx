// Outputs that lie on an input's memory lie there afterwards: what `reshape` had to copy is no view of it.
// run: reinplace, run
graph(%x: f32[2, 3]) {
  %y: f32[6] = aten.view.default(%x, [6])
  %t: f32[3, 2][1, 3] = aten.t.default(%x)
  %f: f32[2, 3] = aten.reshape.default(%t, [2, 3])
  %w: f32[2, 3] = aten.copy_.default(%x, %f)
  return %y
}

// == reinplace
// graph(%x: f32[2, 3]) {
//   %t: f32[3, 2][1, 3] = aten.t.default(%x)
//   %f: f32[2, 3] = aten.reshape.default(%t, [2, 3])
//   %write_back: f32[2, 3] = aten.copy_.default(%x, %f)
//   %x_view: f32[6] = aten.as_strided.default(%x, [6], [1], 0)
//   return %x_view
// }

// == run
// input 0: f32[2, 3][3, 1]+0 = [0.0 3.0 1.0 4.0 2.0 5.0]
// output 0: f32[6][1]+0 = [0.0 3.0 1.0 4.0 2.0 5.0], on the storage of input 0
