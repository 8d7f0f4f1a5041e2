// A write into an expanded tensor is refused, as eager refuses it.
// run: functionalize, run
graph(%a: f32[1, 3]) {
  %x: f32[2, 3][0, 1] = aten.expand.default(%a, [2, 3])
  %w: f32[2, 3][0, 1] = aten.add_.Tensor(%x, 1)
  return %w
}

// == functionalize
// error: unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation. (at %w = aten.add_.Tensor)

// == run
// error: unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation. (at %w = aten.add_.Tensor)
