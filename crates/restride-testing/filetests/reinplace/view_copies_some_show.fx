// The copy stays whose strides the caller would see, or would be made up for by as large a copy; the others are views.
// run: functionalize, views, reinplace, run
graph(%x: f32[2, 3], %y: f32[8, 4]) {
  %a: f32[3, 2] = aten.permute_copy.default(%x, [1, 0])
  %b: f32[3, 2] = aten.exp.default(%a)
  %c: f32[3] = aten.select_copy.int(%a, 1, 1)
  %d: f32[3] = aten.neg.default(%c)
  %t: f32[4, 8] = aten.t_copy.default(%y)
  %u: f32[4, 2] = aten.slice_copy.Tensor(%t, 1, 0, 2)
  %v: f32[4, 2] = aten.neg.default(%u)
  %w: f32[4] = aten.sum.dim_IntList(%t, [1])
  return %b, %d, %v, %w
}

// == functionalize
// graph(%x: f32[2, 3], %y: f32[8, 4]) {
//   %a: f32[3, 2] = aten.permute_copy.default(%x, [1, 0])
//   %b: f32[3, 2] = aten.exp.default(%a)
//   %c: f32[3] = aten.select_copy.int(%a, 1, 1)
//   %d: f32[3] = aten.neg.default(%c)
//   %t: f32[4, 8] = aten.t_copy.default(%y)
//   %u: f32[4, 2] = aten.slice_copy.Tensor(%t, 1, 0, 2)
//   %v: f32[4, 2] = aten.neg.default(%u)
//   %w: f32[4] = aten.sum.dim_IntList(%t, [1])
//   return %b, %d, %v, %w
// }

// == views
// stage: functional
//
// graph(%x: f32[2, 3], %y: f32[8, 4]) {
//   %a: f32[3, 2] = aten.permute_copy.default(%x, [1, 0])
//   %b: f32[3, 2] = aten.exp.default(%a)
//   %c: f32[3][2]+1 = aten.select.int(%a, 1, 1)
//   %d: f32[3] = aten.neg.default(%c)
//   %t: f32[4, 8][1, 4] = aten.t.default(%y)
//   %u: f32[4, 2] = aten.slice_copy.Tensor(%t, 1, 0, 2)
//   %v: f32[4, 2] = aten.neg.default(%u)
//   %w: f32[4] = aten.sum.dim_IntList(%t, [1])
//   return %b, %d, %v, %w
// }

// == reinplace
// graph(%x: f32[2, 3], %y: f32[8, 4]) {
//   %a: f32[3, 2] = aten.permute_copy.default(%x, [1, 0])
//   %b: f32[3, 2] = aten.exp.default(%a)
//   %c: f32[3][2]+1 = aten.select.int(%a, 1, 1)
//   %d: f32[3] = aten.neg.default(%c)
//   %t: f32[4, 8][1, 4] = aten.t.default(%y)
//   %u: f32[4, 2] = aten.slice_copy.Tensor(%t, 1, 0, 2)
//   %v: f32[4, 2] = aten.neg_.default(%u)
//   %w: f32[4] = aten.sum.dim_IntList(%t, [1])
//   return %b, %d, %v, %w
// }

// == run
// input 0: f32[2, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// input 1: f32[8, 4][4, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0 18.0 19.0 20.0 21.0 22.0 23.0 24.0 25.0 26.0 27.0 28.0 29.0 30.0 31.0]
// output 0: f32[3, 2][2, 1]+0 = [1.0 20.08553695678711 2.7182817459106445 54.59815216064453 7.389056205749512 148.4131622314453]
// output 1: f32[3][1]+0 = [-3.0 -4.0 -5.0]
// output 2: f32[4, 2][2, 1]+0 = [-0.0 -4.0 -1.0 -5.0 -2.0 -6.0 -3.0 -7.0]
// output 3: f32[4][1]+0 = [112.0 120.0 128.0 136.0]
