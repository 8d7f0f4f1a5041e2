// The part of a computed value that a cat takes over at its own place stays where it is: the other parts are written into the value.
// Not so where the value is read later, where the part goes to another place, and where it is the smaller one.
// run: place, copies, run
graph(%x: f32[2, 6], %y: f32[6, 2]) {
  %a: f32[2, 6] = aten.exp.default(%x)
  %a0: f32[2, 1] = aten.slice.Tensor(%a, 1, 0, 1)
  %a1: f32[2, 1] = aten.slice.Tensor(%a, 1, 1, 2)
  %a2: f32[2, 4] = aten.slice.Tensor(%a, 1, 2, 6)
  %b0: f32[2, 1] = aten.mul.Tensor(%a0, %a1)
  %b1: f32[2, 1] = aten.sub.Tensor(%a1, 1)
  %b: f32[2, 6] = aten.cat.default([%b0, %b1, %a2], 1)
  %t: f32[2, 6][1, 2] = aten.t.default(%y)
  %c: f32[2, 6][1, 2] = aten.exp.default(%t)
  %c0: f32[2, 4][1, 2] = aten.slice.Tensor(%c, -1, 0, 4)
  %c1: f32[2, 2][1, 2]+8 = aten.slice.Tensor(%c, -1, 4, 6)
  %c2: f32[2, 2][1, 2] = aten.neg.default(%c1)
  %d: f32[2, 6] = aten.cat.default([%c0, %c2], -1)
  %e: f32[2, 6] = aten.exp.default(%b)
  %e1: f32[2, 4] = aten.slice.Tensor(%e, 1, 2, 6)
  %f: f32[2, 6] = aten.cat.default([%a0, %a1, %e1], 1)
  %g: f32[2, 6] = aten.neg.default(%e)
  %h: f32[2, 6] = aten.exp.default(%d)
  %h1: f32[2, 4] = aten.slice.Tensor(%h, 1, 2, 6)
  %i: f32[2, 6] = aten.cat.default([%h1, %a0, %a1], 1)
  %j: f32[2, 6] = aten.sqrt.default(%x)
  %j1: f32[2, 2] = aten.slice.Tensor(%j, 1, 0, 2)
  %k: f32[2, 6] = aten.cat.default([%j1, %a2], 1)
  return %b, %d, %f, %g, %i, %k
}
