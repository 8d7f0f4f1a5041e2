// An operand that shares some cells of the target is refused.
// run: functionalize, run
graph(%x: f32[4]) {
  %p: f32[3] = aten.slice.Tensor(%x, 0, 0, 3)
  %q: f32[3]+1 = aten.slice.Tensor(%x, 0, 1, 4)
  %w: f32[3] = aten.add_.Tensor(%p, %q)
  return %x
}

// == functionalize
// error: unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation. (at %w = aten.add_.Tensor)

// == run
// error: unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation. (at %w = aten.add_.Tensor)
