// In the view form nothing that has contents is overwritten: new contents are declared, whatever else is returned.
// run: functionalize, views, run
graph(%x: f32[3], %y: f32[3], %b: f32[9]) {
  %a: f32[3] = aten.mul.Tensor(%x, 2)
  %s: f32[3] = aten.sub.Tensor(%x, %y)
  %t: f32[3] = aten.mul.Tensor(%s, %x)
  %c: f32[9] = aten.cat.default([%a, %s, %t])
  %n: f32[9] = aten.copy_.default(%b, %c)
  %o: f32[3] = aten.copy_.default(%x, %y)
  %p: f32[3] = aten.copy_.default(%y, %a)
  %v: f32[2]+1 = aten.slice.Tensor(%n, 0, 1, 3)
  %e: f32[9] = aten.neg.default(%c)
  return %v, %e, %a
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: mutation of %y
// output 2: mutation of %b
// output 3: user as view f32[2]+1 of input %b
//
// graph(%x: f32[3], %y: f32[3], %b: f32[9]) {
//   %a: f32[3] = aten.mul.Tensor(%x, 2)
//   %s: f32[3] = aten.sub.Tensor(%x, %y)
//   %t: f32[3] = aten.mul.Tensor(%s, %x)
//   %c: f32[9] = aten.cat.default([%a, %s, %t])
//   %e: f32[9] = aten.neg.default(%c)
//   %v: f32[2]+1 = aten.slice.Tensor(%c, 0, 1, 3)
//   return %y, %a, %c, %v, %e, %a
// }

// == views
// output 0: mutation of %x
// output 1: mutation of %y
// output 2: mutation of %b
//
// graph(%x: f32[3], %y: f32[3], %b: f32[9]) {
//   %a: f32[3] = aten.mul.Tensor(%x, 2)
//   %c: f32[9] = aten.empty_strided.default([9], [1], dtype=f32)
//   %c_part: f32[3]+3 = aten.slice.Tensor(%c, 0, 3, 6)
//   %s: f32[3]+3 = aten.sub.out(%x, %y, out=%c_part)
//   %c_part_1: f32[3]+6 = aten.slice.Tensor(%c, 0, 6, 9)
//   %t: f32[3]+6 = aten.mul.out(%s, %x, out=%c_part_1)
//   %c_part_2: f32[3] = aten.slice.Tensor(%c, 0, 0, 3)
//   %c_part_2_1: f32[3] = aten.copy_.default(%c_part_2, %a)
//   %e: f32[9] = aten.neg.default(%c)
//   %v: f32[2]+1 = aten.slice.Tensor(%c, 0, 1, 3)
//   %y_laid_out: f32[3] = aten.clone.default(%y, memory_format=contiguous_format)
//   %b_view: f32[2]+1 = aten.as_strided.default(%b, [2], [1], 1)
//   return %y_laid_out, %a, %c, %b_view, %e, %a
// }

// == run
// input 0: f32[3][1]+0 = [0.0 1.0 2.0]
// input 1: f32[3][1]+0 = [0.0 2.0 4.0]
// input 2: f32[9][1]+0 = [0.0 2.0 4.0 0.0 0.0 0.0 0.0 0.0 0.0]
// output 0: f32[2][1]+1 = [2.0 4.0], on the storage of input 2
// output 1: f32[9][1]+0 = [-0.0 -2.0 -4.0 -0.0 -0.0 -0.0 -0.0 -0.0 -0.0]
// output 2: f32[3][1]+0 = [0.0 2.0 4.0]
