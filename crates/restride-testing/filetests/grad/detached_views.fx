// Views of a detached tensor are constants to who differentiates, read from the base or not, before and after it is written.
// run: functionalize, grad
graph(%x: f32[2, 3]) {
  %v: f32[2, 3] = aten.detach.default(%x)
  %y: f32[2, 3] = aten.mul.Tensor(%v, %x)
  %p: f32[3, 2][1, 3] = aten.permute.default(%v, [1, 0])
  %w: f32[3, 2][1, 3] = aten.mul.Tensor(%p, %p)
  %c: f32[2, 3] = aten.mul.Tensor(%x, 2)
  %d: f32[2, 3] = aten.detach.default(%c)
  %r: f32[3]+3 = aten.select.int(%d, 0, 1)
  %m: f32[2, 3] = aten.mul_.Tensor(%c, 3)
  %q: f32[3] = aten.mul.Tensor(%r, %r)
  %a: f32[] = aten.sum.default(%y)
  %b: f32[] = aten.sum.default(%w)
  %e: f32[] = aten.sum.default(%q)
  %f: f32[] = aten.sum.default(%m)
  %g: f32[] = aten.add.Tensor(%a, %b)
  %h: f32[] = aten.add.Tensor(%g, %e)
  %loss: f32[] = aten.add.Tensor(%h, %f)
  return %loss
}

// == functionalize
// stage: functional
//
// graph(%x: f32[2, 3]) {
//   %v: f32[2, 3] = aten.detach.default(%x)
//   %y: f32[2, 3] = aten.mul.Tensor(%v, %x)
//   %p: f32[3, 2][1, 3] = aten.permute.default(%v, [1, 0])
//   %w: f32[3, 2][1, 3] = aten.mul.Tensor(%p, %p)
//   %c: f32[2, 3] = aten.mul.Tensor(%x, 2)
//   %m: f32[2, 3] = aten.mul.Tensor(%c, 3)
//   %q: f32[3]+3 = aten.select.int(%m, 0, 1)
//   %q_1: f32[3]+3 = aten.detach.default(%q)
//   %q_2: f32[3] = aten.mul.Tensor(%q_1, %q_1)
//   %a: f32[] = aten.sum.default(%y)
//   %b: f32[] = aten.sum.default(%w)
//   %e: f32[] = aten.sum.default(%q_2)
//   %f: f32[] = aten.sum.default(%m)
//   %g: f32[] = aten.add.Tensor(%a, %b)
//   %h: f32[] = aten.add.Tensor(%g, %e)
//   %loss: f32[] = aten.add.Tensor(%h, %f)
//   return %loss
// }

// == grad
// stage: functional
// output 0: loss
// output 1: gradient of %x
//
// graph(%x: f32[2, 3]) {
//   %v: f32[2, 3] = aten.detach.default(%x)
//   %y: f32[2, 3] = aten.mul.Tensor(%v, %x)
//   %p: f32[3, 2][1, 3] = aten.permute.default(%v, [1, 0])
//   %w: f32[3, 2][1, 3] = aten.mul.Tensor(%p, %p)
//   %c: f32[2, 3] = aten.mul.Tensor(%x, 2)
//   %m: f32[2, 3] = aten.mul.Tensor(%c, 3)
//   %q: f32[3]+3 = aten.select.int(%m, 0, 1)
//   %q_1: f32[3]+3 = aten.detach.default(%q)
//   %q_2: f32[3] = aten.mul.Tensor(%q_1, %q_1)
//   %a: f32[] = aten.sum.default(%y)
//   %b: f32[] = aten.sum.default(%w)
//   %e: f32[] = aten.sum.default(%q_2)
//   %f: f32[] = aten.sum.default(%m)
//   %g: f32[] = aten.add.Tensor(%a, %b)
//   %h: f32[] = aten.add.Tensor(%g, %e)
//   %loss: f32[] = aten.add.Tensor(%h, %f)
//   %grad: f32[] = aten.full.default([], 1, dtype=f32)
//   %grad_1: f32[1, 1] = aten.reshape.default(%grad, [1, 1])
//   %grad_2: f32[2, 3][0, 0] = aten.expand.default(%grad_1, [2, 3])
//   %grad_3: f32[1, 1] = aten.reshape.default(%grad, [1, 1])
//   %grad_4: f32[2, 3][0, 0] = aten.expand.default(%grad_3, [2, 3])
//   %grad_5: f32[] = aten.full.default([], 3, dtype=f32)
//   %grad_6: f32[2, 3] = aten.mul.Tensor(%grad_2, %grad_5)
//   %grad_7: f32[] = aten.full.default([], 2, dtype=f32)
//   %grad_8: f32[2, 3] = aten.mul.Tensor(%grad_6, %grad_7)
//   %grad_9: f32[2, 3] = aten.mul.Tensor(%grad_4, %v)
//   %grad_10: f32[2, 3] = aten.add.Tensor(%grad_8, %grad_9)
//   return %loss, %grad_10
// }
