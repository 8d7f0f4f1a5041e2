// A branch that gives what it makes twice: what is written through one result is seen in the other where that branch
// ran. Refused.
// run: functionalize
graph(%x: f32[2], %p: bool[]) {
  %y: f32[2], %z: f32[2] = higher_order.cond(%p, @yes, @no, [%x])
  %w: f32[2] = aten.add_.Scalar(%y, 1)
  return %z
}

graph @yes(%a: f32[2]) {
  %v: f32[2] = aten.neg.default(%a)
  %u: f32[2] = aten.alias.default(%v)
  return %v, %u
}

graph @no(%a: f32[2]) {
  %v: f32[2] = aten.neg.default(%a)
  %u: f32[2] = aten.neg.default(%a)
  return %v, %u
}

// == functionalize
// error: the memory of the results of higher_order.cond depends on data, and is written or returned; clone the results of the call, or those of its graphs
