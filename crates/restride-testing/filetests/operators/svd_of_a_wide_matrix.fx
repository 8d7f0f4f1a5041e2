// `svd` gives V, not its conjugate transpose: composed, a transposed conjugate is transposed.
// run: run
graph(%x: f32[2, 3]) {
  %u: f32[2, 2][1, 2], %s: f32[2], %v: f32[3, 2] = aten.svd.default(%x)
  %d: f32[2, 2] = aten.diag.default(%s)
  %p: f32[2, 2] = aten.mm.default(%u, %d)
  %t: f32[2, 3][1, 2] = aten.t.default(%v)
  %y: f32[2, 3] = aten.mm.default(%p, %t)
  return %y
}
