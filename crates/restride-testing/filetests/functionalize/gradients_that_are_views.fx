// A program with its gradients, as PyTorch exports one: a gradient is a view of what was computed, one of a part.
// run: functionalize
output 0: loss
output 1: gradient of %w
output 2: gradient of %v
graph(%w: f32[2, 3], %v: f32[2], %x: f32[4, 3]) {
  %t: f32[3, 2][1, 3] = aten.t.default(%w)
  %y: f32[4, 2] = aten.mm.default(%x, %t)
  %b: f32[4, 2] = aten.add.Tensor(%y, %v)
  %l: f32[] = aten.sum.default(%b)
  %o: f32[4, 2] = aten.ones_like.default(%b)
  %m: f32[3, 4][1, 3] = aten.t.default(%x)
  %g: f32[3, 2] = aten.mm.default(%m, %o)
  %h: f32[2, 3][1, 2] = aten.t.default(%g)
  %s: f32[1, 2] = aten.sum.dim_IntList(%o, [0], True)
  %k: f32[2] = aten.view.default(%s, [2])
  return %l, %h, %k
}

// == functionalize
// stage: functional
// output 0: loss
// output 1: gradient of %w
// output 2: gradient of %v
//
// graph(%w: f32[2, 3], %v: f32[2], %x: f32[4, 3]) {
//   %t: f32[3, 2][1, 3] = aten.t.default(%w)
//   %y: f32[4, 2] = aten.mm.default(%x, %t)
//   %b: f32[4, 2] = aten.add.Tensor(%y, %v)
//   %l: f32[] = aten.sum.default(%b)
//   %o: f32[4, 2] = aten.ones_like.default(%b)
//   %m: f32[3, 4][1, 3] = aten.t.default(%x)
//   %g: f32[3, 2] = aten.mm.default(%m, %o)
//   %s: f32[1, 2] = aten.sum.dim_IntList(%o, [0], True)
//   %h: f32[2, 3][1, 2] = aten.t.default(%g)
//   %k: f32[2] = aten.view.default(%s, [2])
//   return %l, %h, %k
// }
