// One branch returns a conjugate view: whether PyTorch refuses `view_as_real` depends on data. An addition does not depend on it.
// run: functionalize
graph(%p: bool[], %a: c64[2]) {
  %r: c64[2], %s: c64[2] = higher_order.cond(%p, @yes, @no, [%a])
  %t: c64[2] = aten.add.Tensor(%s, %s)
  %v: f32[2, 2] = aten.view_as_real.default(%r)
  return %v, %t
}
graph @yes(%x: c64[2]) {
  %c: c64[2] = aten._conj.default(%x)
  %m: c64[2] = aten.mul.Tensor(%x, %x)
  return %c, %m
}
graph @no(%x: c64[2]) {
  %m: c64[2] = aten.mul.Tensor(%x, 2)
  %c: c64[2] = aten._conj.default(%m)
  return %m, %c
}

// == functionalize
// error: the conjugate and negative bits of the results of higher_order.cond depend on data, and a call reads them (at %v = aten.view_as_real.default); call resolve_conj() or resolve_neg() on the results of its graphs
