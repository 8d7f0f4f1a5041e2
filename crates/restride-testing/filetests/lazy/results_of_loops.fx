// The number of iterations decides whether the carried result is a conjugate view.
// run: functionalize
graph(%n: i64[], %a: c64[2]) {
  %k: i64[], %r: c64[2] = higher_order.while_loop(@t, @b, [%n, %a], [])
  %v: f32[2, 2] = aten.view_as_real.default(%r)
  return %v
}
graph @t(%i: i64[], %x: c64[2]) {
  %l: bool[] = aten.lt.Scalar(%i, 3)
  return %l
}
graph @b(%i: i64[], %x: c64[2]) {
  %j: i64[] = aten.add.Scalar(%i, 1)
  %c: c64[2] = aten._conj.default(%x)
  return %j, %c
}

// == functionalize
// error: the conjugate and negative bits of the results of higher_order.while_loop depend on data, and a call reads them (at %v = aten.view_as_real.default); call resolve_conj() or resolve_neg() on the results of its graphs
