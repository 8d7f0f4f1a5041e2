// A branch that writes what it is given: the storage goes in and comes out.
// run: functionalize, run
graph(%x: f32[2, 2], %p: bool[]) {
  %r: f32[2]+2 = aten.select.int(%x, 0, 1)
  %y: f32[2] = higher_order.cond(%p, @yes, @no, [%r])
  %s: f32[2, 2] = aten.add.Tensor(%x, 1)
  return %y, %s
}
graph @yes(%a: f32[2]+2) {
  %w: f32[2]+2 = aten.zero_.default(%a)
  %c: f32[2] = aten.add.Tensor(%a, 1)
  return %c
}
graph @no(%a: f32[2]+2) {
  %c: f32[2] = aten.add.Tensor(%a, 5)
  return %c
}

// == functionalize
// stage: functional
// output 0: mutation of %x
//
// graph(%x: f32[2, 2], %p: bool[]) {
//   %y: f32[2], %x_1: f32[2, 2] = higher_order.cond(%p, @graph1, @graph2, [%x])
//   %s: f32[2, 2] = aten.add.Tensor(%x_1, 1)
//   return %x_1, %y, %s
// }
//
// graph @graph1(%base_0: f32[2, 2]) {
//   %w: f32[2]+2 = aten.select.int(%base_0, 0, 1)
//   %w_1: f32[2]+2 = aten.zero.default(%w)
//   %w_2: f32[2, 2] = aten.select_scatter.default(%base_0, %w_1, 0, 1)
//   %c: f32[2] = aten.add.Tensor(%w_1, 1)
//   return %c, %w_2
// }
//
// graph @graph2(%base_0: f32[2, 2]) {
//   %c: f32[2]+2 = aten.select.int(%base_0, 0, 1)
//   %c_1: f32[2] = aten.add.Tensor(%c, 5)
//   return %c_1, %base_0
// }

// == run
// input 0: f32[2, 2][2, 1]+0 = [0.0 1.0 2.0 3.0]
// input 1: bool[][]+0 = [false]
// output 0: f32[2][1]+0 = [7.0 8.0]
// output 1: f32[2, 2][2, 1]+0 = [1.0 2.0 3.0 4.0]
