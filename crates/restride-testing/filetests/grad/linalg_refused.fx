// PyTorch has no gradient of reflections as LAPACK keeps them.
// run: grad
graph(%a: f64[3, 2]) {
  %r: f64[3, 2][1, 3], %tau: f64[2] = aten.geqrf.default(%a)
  %l: f64[] = aten.sum.default(%r)
  return %l
}

// == grad
// error: its gradient: there is no gradient of aten.geqrf.default: PyTorch has none (at %r, %tau = aten.geqrf.default)
