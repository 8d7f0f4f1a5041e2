// Eager PyTorch refuses to view a negated tensor as another type, in a body as well.
// run: functionalize, run
graph(%x: f32[2], %flag: bool[]) {
  %n: f32[2] = aten._neg_view.default(%x)
  %y: i32[2] = higher_order.cond(%flag, @yes, @no, [%n])
  return %y
}

graph @yes(%a: f32[2]) {
  %v: i32[2] = aten.view.dtype(%a, i32)
  %c: i32[2] = aten.clone.default(%v)
  return %c
}

graph @no(%a: f32[2]) {
  %v: i32[2] = aten.view.dtype(%a, i32)
  %c: i32[2] = aten.clone.default(%v)
  return %c
}

// == functionalize
// error: torch.Tensor.view is not supported for conjugate view tensors when converting to a different dtype. Please resolve the tensor first (at %v = aten.view.dtype)

// == run
// error: torch.Tensor.view is not supported for conjugate view tensors when converting to a different dtype. Please resolve the tensor first (at %v = aten.view.dtype)
