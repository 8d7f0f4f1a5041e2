// Operators that take a stretched target do not take a lazily mapped one: what they leave in a copy is copied back.
// run: functionalize, run
graph(%x: f32[1]) {
  %w: f32[3][0] = aten.expand.default(%x, [3])
  %n: f32[3][0] = aten._neg_view.default(%w)
  %a: f32[3][0] = aten.fill_.Scalar(%n, 2)
  return %a
}

// == functionalize
// error: unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation. (at %a = aten.fill_.Scalar)

// == run
// error: unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation. (at %a = aten.fill_.Scalar)
