// Parts are computed in their regions of the whole; what comes from elsewhere is copied there.
// run: functionalize, reinplace, views, functional-views, run
graph(%x: f32[2, 3], %y: f32[2, 3]) {
  %a: f32[2, 3] = aten.mul.Tensor(%x, %y)
  %b: f32[2, 3] = aten.add.Tensor(%a, %y)
  %c: f32[2, 9] = aten.cat.default([%a, %x, %b], 1)
  %d: f32[2, 9] = aten.neg.default(%c)
  return %d
}

// == functionalize
// graph(%x: f32[2, 3], %y: f32[2, 3]) {
//   %a: f32[2, 3] = aten.mul.Tensor(%x, %y)
//   %b: f32[2, 3] = aten.add.Tensor(%a, %y)
//   %c: f32[2, 9] = aten.cat.default([%a, %x, %b], 1)
//   %d: f32[2, 9] = aten.neg.default(%c)
//   return %d
// }

// == reinplace
// graph(%x: f32[2, 3], %y: f32[2, 3]) {
//   %c: f32[2, 9] = aten.empty_strided.default([2, 9], [9, 1], dtype=f32)
//   %c_part: f32[2, 3][9, 1] = aten.slice.Tensor(%c, 1, 0, 3)
//   %a: f32[2, 3][9, 1] = aten.mul.out(%x, %y, out=%c_part)
//   %c_part_1: f32[2, 3][9, 1]+6 = aten.slice.Tensor(%c, 1, 6, 9)
//   %b: f32[2, 3][9, 1]+6 = aten.add.out(%a, %y, out=%c_part_1)
//   %c_part_2: f32[2, 3][9, 1]+3 = aten.slice.Tensor(%c, 1, 3, 6)
//   %c_part_2_1: f32[2, 3][9, 1]+3 = aten.copy_.default(%c_part_2, %x)
//   %d: f32[2, 9] = aten.neg_.default(%c)
//   return %d
// }

// == views
// graph(%x: f32[2, 3], %y: f32[2, 3]) {
//   %c: f32[2, 9] = aten.empty_strided.default([2, 9], [9, 1], dtype=f32)
//   %c_part: f32[2, 3][9, 1] = aten.slice.Tensor(%c, 1, 0, 3)
//   %a: f32[2, 3][9, 1] = aten.mul.out(%x, %y, out=%c_part)
//   %c_part_1: f32[2, 3][9, 1]+6 = aten.slice.Tensor(%c, 1, 6, 9)
//   %b: f32[2, 3][9, 1]+6 = aten.add.out(%a, %y, out=%c_part_1)
//   %c_part_2: f32[2, 3][9, 1]+3 = aten.slice.Tensor(%c, 1, 3, 6)
//   %c_part_2_1: f32[2, 3][9, 1]+3 = aten.copy_.default(%c_part_2, %x)
//   %d: f32[2, 9] = aten.neg.default(%c)
//   return %d
// }

// == functional-views
// graph(%x: f32[2, 3], %y: f32[2, 3]) {
//   %a: f32[2, 3] = aten.mul.Tensor(%x, %y)
//   %b: f32[2, 3] = aten.add.Tensor(%a, %y)
//   %c: f32[2, 9] = aten.cat.default([%a, %x, %b], 1)
//   %d: f32[2, 9] = aten.neg.default(%c)
//   return %d
// }

// == run
// input 0: f32[2, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// input 1: f32[2, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// output 0: f32[2, 9][9, 1]+0 = [-0.0 -1.0 -4.0 -0.0 -1.0 -2.0 -0.0 -2.0 -6.0 -9.0 -16.0 -25.0 -3.0 -4.0 -5.0 -12.0 -20.0 -30.0]
