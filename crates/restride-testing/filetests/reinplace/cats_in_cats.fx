// The lists of a dense block: each is a slice of the last, and every part is written once.
// run: functionalize, reinplace, views, run
graph(%x: f32[1, 2, 2]) {
  %a: f32[1, 2, 2] = aten.exp.default(%x)
  %b: f32[1, 2, 2] = aten.relu.default(%a)
  %ab: f32[1, 4, 2] = aten.cat.default([%a, %b], 1)
  %c: f32[1, 1, 2] = aten.sum.dim_IntList(%ab, [1], True)
  %abc: f32[1, 5, 2] = aten.cat.default([%a, %b, %c], 1)
  %d: f32[1, 1, 2] = aten.sum.dim_IntList(%abc, [1], True)
  %all: f32[1, 12, 2] = aten.cat.default([%x, %a, %b, %c, %d, %ab], 1)
  return %all
}

// == functionalize
// graph(%x: f32[1, 2, 2]) {
//   %a: f32[1, 2, 2] = aten.exp.default(%x)
//   %b: f32[1, 2, 2] = aten.relu.default(%a)
//   %ab: f32[1, 4, 2] = aten.cat.default([%a, %b], 1)
//   %c: f32[1, 1, 2] = aten.sum.dim_IntList(%ab, [1], True)
//   %abc: f32[1, 5, 2] = aten.cat.default([%a, %b, %c], 1)
//   %d: f32[1, 1, 2] = aten.sum.dim_IntList(%abc, [1], True)
//   %all: f32[1, 12, 2] = aten.cat.default([%x, %a, %b, %c, %d, %ab], 1)
//   return %all
// }

// == reinplace
// graph(%x: f32[1, 2, 2]) {
//   %all: f32[1, 12, 2] = aten.empty_strided.default([1, 12, 2], [24, 2, 1], dtype=f32)
//   %all_part: f32[1, 2, 2][24, 2, 1]+4 = aten.slice.Tensor(%all, 1, 2, 4)
//   %a: f32[1, 2, 2][24, 2, 1]+4 = aten.exp.out(%x, out=%all_part)
//   %b: f32[1, 2, 2] = aten.relu.default(%a)
//   %all_part_1: f32[1, 2, 2][24, 2, 1]+8 = aten.slice.Tensor(%all, 1, 4, 6)
//   %all_part_1_1: f32[1, 2, 2][24, 2, 1]+8 = aten.copy_.default(%all_part_1, %b)
//   %all_part_2: f32[1, 4, 2][24, 2, 1]+4 = aten.slice.Tensor(%all, 1, 2, 6)
//   %c: f32[1, 1, 2] = aten.sum.dim_IntList(%all_part_2, [1], True)
//   %all_part_3: f32[1, 1, 2][24, 2, 1]+12 = aten.slice.Tensor(%all, 1, 6, 7)
//   %all_part_3_1: f32[1, 1, 2][24, 2, 1]+12 = aten.copy_.default(%all_part_3, %c)
//   %all_part_4: f32[1, 5, 2][24, 2, 1]+4 = aten.slice.Tensor(%all, 1, 2, 7)
//   %d: f32[1, 1, 2] = aten.sum.dim_IntList(%all_part_4, [1], True)
//   %all_part_5: f32[1, 2, 2][24, 2, 1] = aten.slice.Tensor(%all, 1, 0, 2)
//   %all_part_5_1: f32[1, 2, 2][24, 2, 1] = aten.copy_.default(%all_part_5, %x)
//   %all_part_6: f32[1, 1, 2][24, 2, 1]+14 = aten.slice.Tensor(%all, 1, 7, 8)
//   %all_part_6_1: f32[1, 1, 2][24, 2, 1]+14 = aten.copy_.default(%all_part_6, %d)
//   %all_part_7: f32[1, 4, 2][24, 2, 1]+16 = aten.slice.Tensor(%all, 1, 8, 12)
//   %all_part_7_1: f32[1, 4, 2][24, 2, 1]+16 = aten.copy_.default(%all_part_7, %all_part_2)
//   return %all
// }

// == views
// graph(%x: f32[1, 2, 2]) {
//   %all: f32[1, 12, 2] = aten.empty_strided.default([1, 12, 2], [24, 2, 1], dtype=f32)
//   %all_part: f32[1, 2, 2][24, 2, 1]+4 = aten.slice.Tensor(%all, 1, 2, 4)
//   %a: f32[1, 2, 2][24, 2, 1]+4 = aten.exp.out(%x, out=%all_part)
//   %b: f32[1, 2, 2] = aten.relu.default(%a)
//   %all_part_1: f32[1, 2, 2][24, 2, 1]+8 = aten.slice.Tensor(%all, 1, 4, 6)
//   %all_part_1_1: f32[1, 2, 2][24, 2, 1]+8 = aten.copy_.default(%all_part_1, %b)
//   %all_part_2: f32[1, 4, 2][24, 2, 1]+4 = aten.slice.Tensor(%all, 1, 2, 6)
//   %c: f32[1, 1, 2] = aten.sum.dim_IntList(%all_part_2, [1], True)
//   %all_part_3: f32[1, 1, 2][24, 2, 1]+12 = aten.slice.Tensor(%all, 1, 6, 7)
//   %all_part_3_1: f32[1, 1, 2][24, 2, 1]+12 = aten.copy_.default(%all_part_3, %c)
//   %all_part_4: f32[1, 5, 2][24, 2, 1]+4 = aten.slice.Tensor(%all, 1, 2, 7)
//   %d: f32[1, 1, 2] = aten.sum.dim_IntList(%all_part_4, [1], True)
//   %all_part_5: f32[1, 2, 2][24, 2, 1] = aten.slice.Tensor(%all, 1, 0, 2)
//   %all_part_5_1: f32[1, 2, 2][24, 2, 1] = aten.copy_.default(%all_part_5, %x)
//   %all_part_6: f32[1, 1, 2][24, 2, 1]+14 = aten.slice.Tensor(%all, 1, 7, 8)
//   %all_part_6_1: f32[1, 1, 2][24, 2, 1]+14 = aten.copy_.default(%all_part_6, %d)
//   %all_part_7: f32[1, 4, 2][24, 2, 1]+16 = aten.slice.Tensor(%all, 1, 8, 12)
//   %all_part_7_1: f32[1, 4, 2][24, 2, 1]+16 = aten.copy_.default(%all_part_7, %all_part_2)
//   return %all
// }

// == run
// input 0: f32[1, 2, 2][4, 2, 1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[1, 12, 2][24, 2, 1]+0 = [0.0 1.0 2.0 3.0 1.0 2.7182817459106445 7.389056205749512 20.08553695678711 1.0 2.7182817459106445 7.389056205749512 20.08553695678711 16.778112411499023 45.607635498046875 33.55622482299805 91.21527099609375 1.0 2.7182817459106445 7.389056205749512 20.08553695678711 1.0 2.7182817459106445 7.389056205749512 20.08553695678711]
