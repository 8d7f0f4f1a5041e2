// One branch returns the operand itself, which PyTorch refuses to write beside itself, also where it has no elements.
// run: functionalize
graph(%x: i64[3], %empty: i64[3, 0], %flag: bool[]) {
  %r: i64[3, 0] = higher_order.cond(%flag, @yes, @no, [%empty])
  %w: i64[3, 0] = aten.index_put_.default(%r, [%x], %empty)
  return %x
}

graph @yes(%a: i64[3, 0]) {
  %b: i64[3, 0] = aten.slice.Tensor(%a, 1, 0, 0)
  return %b
}

graph @no(%a: i64[3, 0]) {
  return %a
}

// == functionalize
// error: the memory of the results of higher_order.cond depends on data, and is written or returned (at %w = aten.index_put_.default); clone the results of the call, or those of its graphs
