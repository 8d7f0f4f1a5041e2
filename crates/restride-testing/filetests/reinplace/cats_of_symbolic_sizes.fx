// Parts of symbolic sizes lie in slices that hold for all of them: one after the other, in each other, and a `cat` of some.
// run: functionalize, reinplace, views, run
// sizes: s0=2 s1=3
symbol s0 in [2, inf]
symbol s1 in [2, inf]

graph(%x: f32[2, s0], %y: f32[2, s1]) {
  %a: f32[2, s0] = aten.exp.default(%x)
  %b: f32[2, s1] = aten.mul.Tensor(%y, %y)
  %c: f32[2, s0 + s1] = aten.cat.default([%a, %b], 1)
  %d: f32[2, s0 + s1] = aten.mul.Tensor(%c, 2)
  %e: f32[2, s0] = aten.sub.Tensor(%a, 1)
  %f: f32[2, 3*s0 + 2*s1] = aten.cat.default([%a, %b, %d, %e], 1)
  %u: f32[2, s0] = aten.add.Tensor(%x, 1)
  %v: f32[2, s0] = aten.add.Tensor(%x, 2)
  %s: f32[2, 2, s0] = aten.stack.default([%u, %v], 1)
  return %f, %s
}

// == functionalize
// symbol s0 in [2, inf]
// symbol s1 in [2, inf]
//
// graph(%x: f32[2, s0], %y: f32[2, s1]) {
//   %a: f32[2, s0] = aten.exp.default(%x)
//   %b: f32[2, s1] = aten.mul.Tensor(%y, %y)
//   %c: f32[2, s0 + s1] = aten.cat.default([%a, %b], 1)
//   %d: f32[2, s0 + s1] = aten.mul.Tensor(%c, 2)
//   %e: f32[2, s0] = aten.sub.Tensor(%a, 1)
//   %f: f32[2, 3*s0 + 2*s1] = aten.cat.default([%a, %b, %d, %e], 1)
//   %u: f32[2, s0] = aten.add.Tensor(%x, 1)
//   %v: f32[2, s0] = aten.add.Tensor(%x, 2)
//   %s: f32[2, 2, s0] = aten.stack.default([%u, %v], 1)
//   return %f, %s
// }

// == reinplace
// symbol s0 in [2, inf]
// symbol s1 in [2, inf]
//
// graph(%x: f32[2, s0], %y: f32[2, s1]) {
//   %f: f32[2, 3*s0 + 2*s1] = aten.empty_strided.default([2, 3*s0 + 2*s1], [3*s0 + 2*s1, 1], dtype=f32)
//   %f_part: f32[2, s0][3*s0 + 2*s1, 1] = aten.slice.Tensor(%f, 1, 0, s0)
//   %a: f32[2, s0][3*s0 + 2*s1, 1] = aten.exp.out(%x, out=%f_part)
//   %f_part_1: f32[2, s1][3*s0 + 2*s1, 1]+s0 = aten.slice.Tensor(%f, 1, s0, s0 + s1)
//   %b: f32[2, s1][3*s0 + 2*s1, 1]+s0 = aten.mul.out(%y, %y, out=%f_part_1)
//   %f_part_2: f32[2, s0 + s1][3*s0 + 2*s1, 1] = aten.slice.Tensor(%f, 1, 0, s0 + s1)
//   %f_part_3: f32[2, s0 + s1][3*s0 + 2*s1, 1]+s0 + s1 = aten.slice.Tensor(%f, 1, s0 + s1, 2*s0 + 2*s1)
//   %d: f32[2, s0 + s1][3*s0 + 2*s1, 1]+s0 + s1 = aten.mul.out(%f_part_2, 2, out=%f_part_3)
//   %f_part_4: f32[2, s0][3*s0 + 2*s1, 1]+2*s0 + 2*s1 = aten.slice.Tensor(%f, 1, 2*s0 + 2*s1, 3*s0 + 2*s1)
//   %e: f32[2, s0][3*s0 + 2*s1, 1]+2*s0 + 2*s1 = aten.sub.out(%a, 1, out=%f_part_4)
//   %s: f32[2, 2, s0] = aten.empty_strided.default([2, 2, s0], [2*s0, s0, 1], dtype=f32)
//   %s_part: f32[2, s0][2*s0, 1] = aten.select.int(%s, 1, 0)
//   %u: f32[2, s0][2*s0, 1] = aten.add.out(%x, 1, out=%s_part)
//   %s_part_1: f32[2, s0][2*s0, 1]+s0 = aten.select.int(%s, 1, 1)
//   %v: f32[2, s0][2*s0, 1]+s0 = aten.add.out(%x, 2, out=%s_part_1)
//   return %f, %s
// }

// == views
// symbol s0 in [2, inf]
// symbol s1 in [2, inf]
//
// graph(%x: f32[2, s0], %y: f32[2, s1]) {
//   %f: f32[2, 3*s0 + 2*s1] = aten.empty_strided.default([2, 3*s0 + 2*s1], [3*s0 + 2*s1, 1], dtype=f32)
//   %f_part: f32[2, s0][3*s0 + 2*s1, 1] = aten.slice.Tensor(%f, 1, 0, s0)
//   %a: f32[2, s0][3*s0 + 2*s1, 1] = aten.exp.out(%x, out=%f_part)
//   %f_part_1: f32[2, s1][3*s0 + 2*s1, 1]+s0 = aten.slice.Tensor(%f, 1, s0, s0 + s1)
//   %b: f32[2, s1][3*s0 + 2*s1, 1]+s0 = aten.mul.out(%y, %y, out=%f_part_1)
//   %f_part_2: f32[2, s0 + s1][3*s0 + 2*s1, 1] = aten.slice.Tensor(%f, 1, 0, s0 + s1)
//   %f_part_3: f32[2, s0 + s1][3*s0 + 2*s1, 1]+s0 + s1 = aten.slice.Tensor(%f, 1, s0 + s1, 2*s0 + 2*s1)
//   %d: f32[2, s0 + s1][3*s0 + 2*s1, 1]+s0 + s1 = aten.mul.out(%f_part_2, 2, out=%f_part_3)
//   %f_part_4: f32[2, s0][3*s0 + 2*s1, 1]+2*s0 + 2*s1 = aten.slice.Tensor(%f, 1, 2*s0 + 2*s1, 3*s0 + 2*s1)
//   %e: f32[2, s0][3*s0 + 2*s1, 1]+2*s0 + 2*s1 = aten.sub.out(%a, 1, out=%f_part_4)
//   %s: f32[2, 2, s0] = aten.empty_strided.default([2, 2, s0], [2*s0, s0, 1], dtype=f32)
//   %s_part: f32[2, s0][2*s0, 1] = aten.select.int(%s, 1, 0)
//   %u: f32[2, s0][2*s0, 1] = aten.add.out(%x, 1, out=%s_part)
//   %s_part_1: f32[2, s0][2*s0, 1]+s0 = aten.select.int(%s, 1, 1)
//   %v: f32[2, s0][2*s0, 1]+s0 = aten.add.out(%x, 2, out=%s_part_1)
//   return %f, %s
// }

// == run
// input 0: f32[2, 2][2, 1]+0 = [0.0 1.0 2.0 3.0]
// input 1: f32[2, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// output 0: f32[2, 12][12, 1]+0 = [1.0 2.7182817459106445 0.0 1.0 4.0 2.0 5.436563491821289 0.0 2.0 8.0 0.0 1.7182817459106445 7.389056205749512 20.08553695678711 9.0 16.0 25.0 14.778112411499023 40.17107391357422 18.0 32.0 50.0 6.389056205749512 19.08553695678711]
// output 1: f32[2, 2, 2][4, 2, 1]+0 = [1.0 2.0 2.0 3.0 3.0 4.0 4.0 5.0]
