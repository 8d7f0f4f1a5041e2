// A lazily negated tensor is viewed as no type, not even as its own.
// run: functionalize, run
graph(%x: i64[3]) {
  %n: i64[3] = aten._neg_view.default(%x)
  %y: i64[3] = aten.view.dtype(%n, i64)
  return %y
}

// == functionalize
// error: torch.Tensor.view is not supported for conjugate view tensors when converting to a different dtype. Please resolve the tensor first (at %y = aten.view.dtype)

// == run
// error: torch.Tensor.view is not supported for conjugate view tensors when converting to a different dtype. Please resolve the tensor first (at %y = aten.view.dtype)
