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

// == run
// input 0: f32[2, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// output 0: f32[2, 3][3, 1]+0 = [4.574468093210271e-8 1.0000001192092896 1.9999998807907104 3.0 4.0 5.0]
