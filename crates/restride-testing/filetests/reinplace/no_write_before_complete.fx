// While the whole is not complete nothing takes over the memory of a part of it, and after that what is free does.
// run: functionalize, reinplace, views, run
graph(%x: f32[1, 4], %y: f32[1, 4]) {
  %a: f32[1, 4] = aten.mul.Tensor(%x, %y)
  %b: f32[1, 4] = aten.exp.default(%a)
  %ab: f32[2, 4] = aten.cat.default([%a, %b])
  %s: f32[2, 4] = aten.neg.default(%ab)
  %c: f32[2, 4] = aten.sub.Tensor(%x, %s)
  %w: f32[4, 4] = aten.cat.default([%a, %b, %c])
  %z: f32[4, 4] = aten.mul.Tensor(2, %w)
  return %z
}

// == functionalize
// graph(%x: f32[1, 4], %y: f32[1, 4]) {
//   %a: f32[1, 4] = aten.mul.Tensor(%x, %y)
//   %b: f32[1, 4] = aten.exp.default(%a)
//   %ab: f32[2, 4] = aten.cat.default([%a, %b])
//   %s: f32[2, 4] = aten.neg.default(%ab)
//   %c: f32[2, 4] = aten.sub.Tensor(%x, %s)
//   %w: f32[4, 4] = aten.cat.default([%a, %b, %c])
//   %z: f32[4, 4] = aten.mul.Tensor(2, %w)
//   return %z
// }

// == reinplace
// graph(%x: f32[1, 4], %y: f32[1, 4]) {
//   %w: f32[4, 4] = aten.empty_strided.default([4, 4], [4, 1], dtype=f32)
//   %w_part: f32[1, 4] = aten.slice.Tensor(%w, 0, 0, 1)
//   %a: f32[1, 4] = aten.mul.out(%x, %y, out=%w_part)
//   %w_part_1: f32[1, 4]+4 = aten.slice.Tensor(%w, 0, 1, 2)
//   %b: f32[1, 4]+4 = aten.exp.out(%a, out=%w_part_1)
//   %w_part_2: f32[2, 4] = aten.slice.Tensor(%w, 0, 0, 2)
//   %s: f32[2, 4] = aten.neg.default(%w_part_2)
//   %w_part_3: f32[2, 4]+8 = aten.slice.Tensor(%w, 0, 2, 4)
//   %c: f32[2, 4]+8 = aten.sub.out(%x, %s, out=%w_part_3)
//   %z: f32[4, 4] = aten.mul.out(2, %w, out=%w)
//   return %z
// }

// == views
// graph(%x: f32[1, 4], %y: f32[1, 4]) {
//   %w: f32[4, 4] = aten.empty_strided.default([4, 4], [4, 1], dtype=f32)
//   %w_part: f32[1, 4] = aten.slice.Tensor(%w, 0, 0, 1)
//   %a: f32[1, 4] = aten.mul.out(%x, %y, out=%w_part)
//   %w_part_1: f32[1, 4]+4 = aten.slice.Tensor(%w, 0, 1, 2)
//   %b: f32[1, 4]+4 = aten.exp.out(%a, out=%w_part_1)
//   %w_part_2: f32[2, 4] = aten.slice.Tensor(%w, 0, 0, 2)
//   %s: f32[2, 4] = aten.neg.default(%w_part_2)
//   %w_part_3: f32[2, 4]+8 = aten.slice.Tensor(%w, 0, 2, 4)
//   %c: f32[2, 4]+8 = aten.sub.out(%x, %s, out=%w_part_3)
//   %z: f32[4, 4] = aten.mul.Tensor(2, %w)
//   return %z
// }

// == run
// input 0: f32[1, 4][4, 1]+0 = [0.0 1.0 2.0 3.0]
// input 1: f32[1, 4][4, 1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[4, 4][4, 1]+0 = [0.0 2.0 8.0 18.0 2.0 5.436563491821289 109.19630432128906 16206.16796875 0.0 4.0 12.0 24.0 2.0 7.436563491821289 113.19630432128906 16212.16796875]
