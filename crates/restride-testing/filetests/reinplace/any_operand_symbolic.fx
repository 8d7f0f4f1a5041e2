// The same with sizes that are not known.
// run: functionalize, reinplace, views, run
// sizes: s0=3
symbol s0 in [2, inf]
graph(%x: f32[s0, 3], %y: f32[s0, 3]) {
  %a: f32[s0, 3] = aten.neg.default(%x)
  %b: f32[s0, 3] = aten.sub.Tensor(%y, %a)
  %c: f32[2*s0, 3] = aten.cat.default([%b, %y])
  return %c
}

// == functionalize
// symbol s0 in [2, inf]
//
// graph(%x: f32[s0, 3], %y: f32[s0, 3]) {
//   %a: f32[s0, 3] = aten.neg.default(%x)
//   %b: f32[s0, 3] = aten.sub.Tensor(%y, %a)
//   %c: f32[2*s0, 3] = aten.cat.default([%b, %y])
//   return %c
// }

// == reinplace
// symbol s0 in [2, inf]
//
// graph(%x: f32[s0, 3], %y: f32[s0, 3]) {
//   %a: f32[s0, 3] = aten.neg.default(%x)
//   %c: f32[2*s0, 3] = aten.empty_strided.default([2*s0, 3], [3, 1], dtype=f32)
//   %c_part: f32[s0, 3] = aten.slice.Tensor(%c, 0, 0, s0)
//   %b: f32[s0, 3] = aten.sub.out(%y, %a, out=%c_part)
//   %c_part_1: f32[s0, 3]+3*s0 = aten.slice.Tensor(%c, 0, s0, 2*s0)
//   %c_part_1_1: f32[s0, 3]+3*s0 = aten.copy_.default(%c_part_1, %y)
//   return %c
// }

// == views
// symbol s0 in [2, inf]
//
// graph(%x: f32[s0, 3], %y: f32[s0, 3]) {
//   %a: f32[s0, 3] = aten.neg.default(%x)
//   %c: f32[2*s0, 3] = aten.empty_strided.default([2*s0, 3], [3, 1], dtype=f32)
//   %c_part: f32[s0, 3] = aten.slice.Tensor(%c, 0, 0, s0)
//   %b: f32[s0, 3] = aten.sub.out(%y, %a, out=%c_part)
//   %c_part_1: f32[s0, 3]+3*s0 = aten.slice.Tensor(%c, 0, s0, 2*s0)
//   %c_part_1_1: f32[s0, 3]+3*s0 = aten.copy_.default(%c_part_1, %y)
//   return %c
// }

// == run
// input 0: f32[3, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0]
// input 1: f32[3, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0]
// output 0: f32[6, 3][3, 1]+0 = [0.0 2.0 4.0 6.0 8.0 10.0 12.0 14.0 16.0 0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0]
