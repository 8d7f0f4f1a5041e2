// What is read after the branches is not theirs to write, and a branch that would copy gives its result in new memory.
// run: reinplace, run

graph(%x: f32[3], %p: bool[]) {
  %b: f32[3] = aten.mul.Tensor(%x, 2)
  %k: f32[3] = aten.clone.default(%b)
  %s: f32[3] = higher_order.cond(%p, @yes, @no, [%k])
  %r: f32[3] = aten.add.Tensor(%k, %b)
  %t: f32[3] = higher_order.cond(%p, @flipped, @same, [%r])
  return %r, %s, %t
}

graph @yes(%v: f32[3]) {
  %a: f32[3] = aten.add_.Tensor(%v, 1)
  %c: f32[3] = aten.sin.default(%v)
  return %c
}

graph @no(%v: f32[3]) {
  %c: f32[3] = aten.cos.default(%v)
  return %c
}

graph @flipped(%v: f32[3]) {
  %f: f32[3] = aten.flip.default(%v, [0])
  %a: f32[3] = aten.copy_.default(%v, %f)
  %c: f32[3] = aten.sin.default(%v)
  return %c
}

graph @same(%v: f32[3]) {
  %c: f32[3] = aten.cos.default(%v)
  return %c
}

// == reinplace
// graph(%x: f32[3], %p: bool[]) {
//   %b: f32[3] = aten.mul.Tensor(%x, 2)
//   %k: f32[3] = aten.clone.default(%b)
//   %s: f32[3] = higher_order.cond(%p, @graph1, @graph2, [%k])
//   %r: f32[3] = aten.add_.Tensor(%k, %b)
//   %t: f32[3], %r_1: f32[3] = higher_order.cond(%p, @graph3, @graph4, [%r])
//   return %r_1, %s, %t
// }
//
// graph @graph1(%base_0: f32[3]) {
//   %a: f32[3] = aten.add_.Tensor(%base_0, 1)
//   %c: f32[3] = aten.sin.default(%a)
//   return %c
// }
//
// graph @graph2(%base_0: f32[3]) {
//   %c: f32[3] = aten.cos.default(%base_0)
//   return %c
// }
//
// graph @graph3(%base_0: f32[3]) {
//   %f: f32[3] = aten.flip.default(%base_0, [0])
//   %c: f32[3] = aten.sin.default(%f)
//   return %c, %f
// }
//
// graph @graph4(%base_0: f32[3]) {
//   %c: f32[3] = aten.cos.default(%base_0)
//   return %c, %base_0
// }

// == run
// input 0: f32[3][1]+0 = [0.0 1.0 2.0]
// input 1: bool[][]+0 = [false]
// output 0: f32[3][1]+0 = [0.0 4.0 8.0]
// output 1: f32[3][1]+0 = [1.0 -0.41614681482315063 -0.6536436080932617]
// output 2: f32[3][1]+0 = [1.0 -0.6536436080932617 -0.1455000340938568]
