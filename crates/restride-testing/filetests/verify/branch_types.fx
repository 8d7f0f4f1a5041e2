// Branches that give results of different types.
// run: verify
graph(%x: f32[2], %p: bool[]) {
  %y: f32[2] = higher_order.cond(%p, @yes, @no, [%x])
  return %y
}
graph @yes(%a: f32[2]) {
  %c: f32[2] = aten.neg.default(%a)
  return %c
}
graph @no(%a: f32[2]) {
  %c: i64[2] = aten.to.dtype(%a, i64)
  return %c
}

// == verify
// error: a body returns i64[2] for %y, which is f32[2] (at %y = higher_order.cond)
