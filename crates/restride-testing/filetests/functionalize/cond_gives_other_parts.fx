// Branches that give other parts of one operand: where the result is depends on data, and a write through the operand is
// seen in it. Refused.
// run: functionalize
graph(%x: i64[3], %p: bool[]) {
  %y: i64[1] = higher_order.cond(%p, @yes, @no, [%x])
  %w: i64[3] = aten.add_.Scalar(%x, 1)
  return %y
}

graph @yes(%a: i64[3]) {
  %v: i64[1] = aten.slice.Tensor(%a, 0, 0, 1)
  return %v
}

graph @no(%a: i64[3]) {
  %v: i64[1]+1 = aten.slice.Tensor(%a, 0, 1, 2)
  return %v
}

// == functionalize
// error: the memory of the results of higher_order.cond depends on data, and is written or returned; clone the results of the call, or those of its graphs
