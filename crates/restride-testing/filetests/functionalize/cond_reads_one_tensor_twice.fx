// A tensor that a branch is given twice is one object there too.
// run: functionalize, run
graph(%x: f32[4], %p: bool[], %i: i64[3]) {
  %e: f32[3, 0] = aten.empty.memory_format([3, 0])
  %y: f32[3, 0] = higher_order.cond(%p, @yes, @no, [%e, %e, %i])
  return %y
}

graph @yes(%a: f32[3, 0], %b: f32[3, 0], %i: i64[3]) {
  %w: f32[3, 0] = aten._index_put_impl_.default(%a, [%i], %b)
  %c: f32[3, 0] = aten.clone.default(%w)
  return %c
}

graph @no(%a: f32[3, 0], %b: f32[3, 0], %i: i64[3]) {
  %c: f32[3, 0] = aten.clone.default(%a)
  return %c
}

// == functionalize
// error: unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation. (at %w = aten._index_put_impl_.default)

// == run
// functionalize refuses: unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation. (at %w = aten._index_put_impl_.default)
