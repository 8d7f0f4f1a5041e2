// Branches that write operands write them again, in the memory that they are given: of an input and of a result.
// run: reinplace, run

graph(%x: f32[3], %p: bool[]) {
  %b: f32[3] = aten.mul.Tensor(%x, 2)
  %s: f32[3] = higher_order.cond(%p, @yes, @no, [%b, %x])
  %r: f32[3] = aten.add.Tensor(%b, %s)
  return %r
}

graph @yes(%v: f32[3], %w: f32[3]) {
  %a: f32[3] = aten.add_.Tensor(%v, 1)
  %m: f32[3] = aten.mul_.Tensor(%w, %v)
  %c: f32[3] = aten.sin.default(%w)
  return %c
}

graph @no(%v: f32[3], %w: f32[3]) {
  %m: f32[3] = aten.mul_.Tensor(%w, 3)
  %c: f32[3] = aten.cos.default(%v)
  return %c
}

// == reinplace
// graph(%x: f32[3], %p: bool[]) {
//   %b: f32[3] = aten.mul.Tensor(%x, 2)
//   %s: f32[3] = higher_order.cond(%p, @graph1, @graph2, [%b, %x])
//   %r: f32[3] = aten.add_.Tensor(%b, %s)
//   return %r
// }
//
// graph @graph1(%base_0: f32[3], %base_1: f32[3]) {
//   %a: f32[3] = aten.add_.Tensor(%base_0, 1)
//   %m: f32[3] = aten.mul_.Tensor(%base_1, %a)
//   %c: f32[3] = aten.sin.default(%m)
//   return %c
// }
//
// graph @graph2(%base_0: f32[3], %base_1: f32[3]) {
//   %m: f32[3] = aten.mul_.Tensor(%base_1, 3)
//   %c: f32[3] = aten.cos.default(%base_0)
//   return %c
// }

// == run
// input 0: f32[3][1]+0 = [0.0 3.0 6.0]
// input 1: bool[][]+0 = [false]
// output 0: f32[3][1]+0 = [1.0 1.5838532447814941 3.3463563919067383]
