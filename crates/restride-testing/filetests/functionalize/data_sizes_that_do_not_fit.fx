// Eager PyTorch refuses two elements for a slice of none, and so does a run in which the write would change nothing.
// run: run
symbol u0 in [0, 4]
symbol u1 in [0, 7]

graph(%n: i64[2], %x: f32[8], %y: f32[8]) {
  %first: i64[] = aten.select.int(%n, 0, 0)
  %item: Sym(u0) = aten.item.default(%first)
  %dst: f32[u0] = aten.slice.Tensor(%y, 0, 0, u0)
  %src: f32[2] = aten.slice.Tensor(%x, 0, 0, 2)
  %copy_: f32[u0] = aten.copy_.default(%dst, %src)
  return %y
}

// == run
// error: The size of tensor a (0) must match the size of tensor b (2) at non-singleton dimension 0 (at %copy_ = aten.copy_.default)
