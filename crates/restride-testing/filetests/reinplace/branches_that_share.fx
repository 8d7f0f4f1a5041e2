// A branch gives one tensor twice, and another one its operand: neither is overwritten while the other is read.
// run: reinplace, run

graph(%a: f32[4], %p: bool[]) {
  %b: f32[4] = aten.mul.Tensor(%a, 2)
  %x: f32[4], %y: f32[4] = higher_order.cond(%p, @yes, @no, [%b])
  %c: f32[4] = aten.add.Tensor(%x, 1)
  %d: f32[4] = aten.mul.Tensor(%c, %y)
  %e: f32[4] = aten.add.Tensor(%b, %d)
  return %c, %d, %e
}

graph @yes(%v: f32[4]) {
  %a: f32[4] = aten.mul.Tensor(%v, 2)
  return %a, %a
}

graph @no(%v: f32[4]) {
  %a: f32[4] = aten.neg.default(%v)
  return %v, %a
}

// == reinplace
// graph(%a: f32[4], %p: bool[]) {
//   %b: f32[4] = aten.mul.Tensor(%a, 2)
//   %x: f32[4], %y: f32[4] = higher_order.cond(%p, @yes, @no, [%b])
//   %c: f32[4] = aten.add.Tensor(%x, 1)
//   %d: f32[4] = aten.mul.out(%c, %y, out=%y)
//   %e: f32[4] = aten.add_.Tensor(%b, %d)
//   return %c, %d, %e
// }
//
// graph @yes(%v: f32[4]) {
//   %a: f32[4] = aten.mul.Tensor(%v, 2)
//   return %a, %a
// }
//
// graph @no(%v: f32[4]) {
//   %a: f32[4] = aten.neg.default(%v)
//   return %v, %a
// }

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// input 1: bool[][]+0 = [false]
// output 0: f32[4][1]+0 = [1.0 3.0 5.0 7.0]
// output 1: f32[4][1]+0 = [-0.0 -6.0 -20.0 -42.0]
// output 2: f32[4][1]+0 = [0.0 -4.0 -16.0 -36.0]
