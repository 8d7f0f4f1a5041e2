// Writes of parts of parts, as PyTorch functionalizes them: each is one write in the base, and costs no copy.
// run: copies, run
graph(%x: f32[4, 3, 4]) {
  %y: f32[4, 3, 4] = aten.mul.Tensor(%x, 2)
  %s: f32[3, 4]+12 = aten.select.int(%y, 0, 1)
  %v: f32[4]+20 = aten.select.int(%s, 0, 2)
  %m: f32[4] = aten.mul.Tensor(%v, 2)
  %s1: f32[3, 4]+12 = aten.select.int(%y, 0, 1)
  %t: f32[3, 4] = aten.select_scatter.default(%s1, %m, 0, 2)
  %y1: f32[4, 3, 4] = aten.select_scatter.default(%y, %t, 0, 1)
  %a: f32[2, 3, 4]+12 = aten.slice.Tensor(%y1, 0, 1, 3)
  %b: f32[2, 4, 3][12, 1, 4]+12 = aten.permute.default(%a, [0, 2, 1])
  %c: f32[2, 3][12, 5]+12 = aten.diagonal.default(%b, 0, 1, 2)
  %n: f32[2, 3] = aten.neg.default(%c)
  %d: f32[2, 4, 3][12, 1, 4] = aten.diagonal_scatter.default(%b, %n, 0, 1, 2)
  %e: f32[2, 3, 4] = aten.permute.default(%d, [0, 2, 1])
  %y2: f32[4, 3, 4] = aten.slice_scatter.default(%y1, %e, 0, 1, 3)
  %w: f32[48] = aten.view.default(%y2, [48])
  %u: f32[16][3] = aten.slice.Tensor(%w, 0, 0, 48, 3)
  %p: f32[16] = aten.add.Tensor(%u, 1)
  %w1: f32[48] = aten.slice_scatter.default(%w, %p, 0, 0, 48, 3)
  %y3: f32[4, 3, 4] = aten.view.default(%w1, [4, 3, 4])
  return %y3
}
