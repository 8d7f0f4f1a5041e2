// A branch writes four bytes of an element of eight, which the other leaves as they are: byte by byte either.
// run: functionalize
graph(%x: i64[3], %flag: bool[]) {
  %v: i32[6] = aten.view.dtype(%x, i32)
  %p: i64[2], %q: i64[1]+2 = aten.split_with_sizes.default(%x, [2, 1], -1)
  %r: i32[6] = higher_order.cond(%flag, @yes, @no, [%v])
  return %p
}

graph @yes(%a: i32[6]) {
  return %a
}

graph @no(%a: i32[6]) {
  %s: i32[1]+4 = aten.slice.Tensor(%a, 0, 4, 5)
  %t: i32[1]+4 = aten.relu_.default(%s)
  return %a
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: user as view i64[2] of input %x
//
// graph(%x: i64[3], %flag: bool[]) {
//   %r: i32[6], %x_1: i64[3] = higher_order.cond(%flag, @graph1, @graph2, [%x])
//   %v: i64[2] = aten.slice.Tensor(%x_1, 0, 0, 2)
//   return %x_1, %v
// }
//
// graph @graph1(%base_0: i64[3]) {
//   %v: i32[6] = aten.view.dtype(%base_0, i32)
//   return %v, %base_0
// }
//
// graph @graph2(%base_0: i64[3]) {
//   %t: i32[6] = aten.view.dtype(%base_0, i32)
//   %s: i32[1]+4 = aten.slice.Tensor(%t, 0, 4, 5)
//   %t_1: i32[1]+4 = aten.relu.default(%s)
//   %t_2: i32[6] = aten.view.dtype(%base_0, i32)
//   %t_3: i32[6] = aten.slice_scatter.default(%t_2, %t_1, 0, 4, 5)
//   %t_4: i64[3] = aten.view.dtype(%t_3, i64)
//   %v: i32[6] = aten.view.dtype(%t_4, i32)
//   return %v, %t_4
// }
