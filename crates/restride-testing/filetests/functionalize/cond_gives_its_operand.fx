// Branches that both return their operand return the object, which a write must not read even where it has no cells.
// run: functionalize, run
graph(%x: f32[3, 0], %p: bool[], %i: i64[3]) {
  %y: f32[3, 0] = higher_order.cond(%p, @yes, @no, [%x])
  %w: f32[3, 0] = aten._index_put_impl_.default(%y, [%i], %x)
  return %y
}

graph @yes(%a: f32[3, 0]) {
  %m: bool[3, 0] = aten.gt.Scalar(%a, 0)
  %v: f32[3, 0] = aten.masked_fill_.Scalar(%a, %m, 7)
  return %v
}

graph @no(%a: f32[3, 0]) {
  return %a
}

// == functionalize
// error: unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation. (at %w = aten._index_put_impl_.default)

// == run
// error: unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation. (at %w = aten._index_put_impl_.default)
