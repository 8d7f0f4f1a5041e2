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
