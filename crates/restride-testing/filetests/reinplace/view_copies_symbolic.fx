// Of symbolic sizes too, copying forms of views are views where the caller sees no other strides.
// run: functionalize, views, reinplace, run
// sizes: s0=3
symbol s0 in [2, inf]

graph(%x: f32[s0, 2, 4]) {
  %a: f32[2, s0, 4] = aten.permute_copy.default(%x, [1, 0, 2])
  %b: f32[s0, 4] = aten.select_copy.int(%a, 0, 1)
  %c: f32[s0, 2] = aten.slice_copy.Tensor(%b, 1, 1, 3)
  %d: f32[2] = aten.sum.dim_IntList(%c, [0])
  %e: f32[s0] = aten.sum.dim_IntList(%b, [1])
  return %d, %e
}

// == functionalize
// symbol s0 in [2, inf]
//
// graph(%x: f32[s0, 2, 4]) {
//   %a: f32[2, s0, 4] = aten.permute_copy.default(%x, [1, 0, 2])
//   %b: f32[s0, 4] = aten.select_copy.int(%a, 0, 1)
//   %c: f32[s0, 2] = aten.slice_copy.Tensor(%b, 1, 1, 3)
//   %d: f32[2] = aten.sum.dim_IntList(%c, [0])
//   %e: f32[s0] = aten.sum.dim_IntList(%b, [1])
//   return %d, %e
// }

// == views
// stage: functional
// symbol s0 in [2, inf]
//
// graph(%x: f32[s0, 2, 4]) {
//   %a: f32[2, s0, 4][4, 8, 1] = aten.permute.default(%x, [1, 0, 2])
//   %b: f32[s0, 4][8, 1]+4 = aten.select.int(%a, 0, 1)
//   %c: f32[s0, 2][8, 1]+5 = aten.slice.Tensor(%b, 1, 1, 3)
//   %d: f32[2] = aten.sum.dim_IntList(%c, [0])
//   %e: f32[s0] = aten.sum.dim_IntList(%b, [1])
//   return %d, %e
// }

// == reinplace
// symbol s0 in [2, inf]
//
// graph(%x: f32[s0, 2, 4]) {
//   %a: f32[2, s0, 4][4, 8, 1] = aten.permute.default(%x, [1, 0, 2])
//   %b: f32[s0, 4][8, 1]+4 = aten.select.int(%a, 0, 1)
//   %c: f32[s0, 2][8, 1]+5 = aten.slice.Tensor(%b, 1, 1, 3)
//   %d: f32[2] = aten.sum.dim_IntList(%c, [0])
//   %e: f32[s0] = aten.sum.dim_IntList(%b, [1])
//   return %d, %e
// }

// == run
// input 0: f32[3, 2, 4][8, 4, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0 18.0 19.0 20.0 21.0 22.0 23.0]
// output 0: f32[2][1]+0 = [39.0 42.0]
// output 1: f32[3][1]+0 = [22.0 54.0 86.0]
