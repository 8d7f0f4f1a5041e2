// A stack that is part of a cat, a part that is there twice, and one that the caller gets: it has memory of its own.
// run: functionalize, reinplace, views, run
graph(%x: f32[3], %y: f32[3]) {
  %a: f32[3] = aten.mul.Tensor(%x, %y)
  %b: f32[3] = aten.add.Tensor(%x, %y)
  %s: f32[2, 3] = aten.stack.default([%a, %b])
  %u: f32[1, 3] = aten.unsqueeze.default(%b, 0)
  %c: f32[5, 3] = aten.cat.default([%s, %u, %s])
  %o: f32[3] = aten.sub.Tensor(%x, %y)
  %p: f32[9] = aten.cat.default([%o, %x, %o])
  return %c, %o, %p
}

// == functionalize
// stage: functional
//
// graph(%x: f32[3], %y: f32[3]) {
//   %a: f32[3] = aten.mul.Tensor(%x, %y)
//   %b: f32[3] = aten.add.Tensor(%x, %y)
//   %s: f32[2, 3] = aten.stack.default([%a, %b])
//   %u: f32[1, 3] = aten.unsqueeze.default(%b, 0)
//   %c: f32[5, 3] = aten.cat.default([%s, %u, %s])
//   %o: f32[3] = aten.sub.Tensor(%x, %y)
//   %p: f32[9] = aten.cat.default([%o, %x, %o])
//   return %c, %o, %p
// }

// == reinplace
// graph(%x: f32[3], %y: f32[3]) {
//   %c: f32[5, 3] = aten.empty_strided.default([5, 3], [3, 1], dtype=f32)
//   %c_part: f32[2, 3] = aten.slice.Tensor(%c, 0, 0, 2)
//   %c_part_1: f32[3] = aten.select.int(%c_part, 0, 0)
//   %a: f32[3] = aten.mul.out(%x, %y, out=%c_part_1)
//   %c_part_2: f32[2, 3] = aten.slice.Tensor(%c, 0, 0, 2)
//   %c_part_3: f32[3]+3 = aten.select.int(%c_part_2, 0, 1)
//   %b: f32[3]+3 = aten.add.out(%x, %y, out=%c_part_3)
//   %c_part_4: f32[2, 3] = aten.slice.Tensor(%c, 0, 0, 2)
//   %u: f32[1, 3]+3 = aten.unsqueeze.default(%b, 0)
//   %c_part_5: f32[1, 3]+6 = aten.slice.Tensor(%c, 0, 2, 3)
//   %c_part_5_1: f32[1, 3]+6 = aten.copy_.default(%c_part_5, %u)
//   %c_part_6: f32[2, 3]+9 = aten.slice.Tensor(%c, 0, 3, 5)
//   %c_part_6_1: f32[2, 3]+9 = aten.copy_.default(%c_part_6, %c_part_4)
//   %o: f32[3] = aten.sub.Tensor(%x, %y)
//   %p: f32[9] = aten.cat.default([%o, %x, %o])
//   return %c, %o, %p
// }

// == views
// graph(%x: f32[3], %y: f32[3]) {
//   %c: f32[5, 3] = aten.empty_strided.default([5, 3], [3, 1], dtype=f32)
//   %c_part: f32[2, 3] = aten.slice.Tensor(%c, 0, 0, 2)
//   %c_part_1: f32[3] = aten.select.int(%c_part, 0, 0)
//   %a: f32[3] = aten.mul.out(%x, %y, out=%c_part_1)
//   %c_part_2: f32[2, 3] = aten.slice.Tensor(%c, 0, 0, 2)
//   %c_part_3: f32[3]+3 = aten.select.int(%c_part_2, 0, 1)
//   %b: f32[3]+3 = aten.add.out(%x, %y, out=%c_part_3)
//   %c_part_4: f32[2, 3] = aten.slice.Tensor(%c, 0, 0, 2)
//   %u: f32[1, 3]+3 = aten.unsqueeze.default(%b, 0)
//   %c_part_5: f32[1, 3]+6 = aten.slice.Tensor(%c, 0, 2, 3)
//   %c_part_5_1: f32[1, 3]+6 = aten.copy_.default(%c_part_5, %u)
//   %c_part_6: f32[2, 3]+9 = aten.slice.Tensor(%c, 0, 3, 5)
//   %c_part_6_1: f32[2, 3]+9 = aten.copy_.default(%c_part_6, %c_part_4)
//   %o: f32[3] = aten.sub.Tensor(%x, %y)
//   %p: f32[9] = aten.cat.default([%o, %x, %o])
//   return %c, %o, %p
// }

// == run
// input 0: f32[3][1]+0 = [0.0 1.0 2.0]
// input 1: f32[3][1]+0 = [0.0 1.0 2.0]
// output 0: f32[5, 3][3, 1]+0 = [0.0 1.0 4.0 0.0 2.0 4.0 0.0 2.0 4.0 0.0 1.0 4.0 0.0 2.0 4.0]
// output 1: f32[3][1]+0 = [0.0 0.0 0.0]
// output 2: f32[9][1]+0 = [0.0 0.0 0.0 0.0 1.0 2.0 0.0 0.0 0.0]
