// Keys and values have symbols of their own, which no guard compares: the operator requires them to be equal.
// run: grad, run
// sizes: s0=3, s1=4, s2=4
symbol s0 in [2, inf]
symbol s1 in [2, inf]
symbol s2 in [2, inf]
graph(%q: f32[1, 2, s0, 4], %k: f32[1, 2, s1, 4], %v: f32[1, 2, s2, 4]) {
  %o: f32[1, 2, s0, 4] = aten.scaled_dot_product_attention.default(%q, %k, %v)
  %l: f32[] = aten.sum.default(%o)
  return %l
}
