// The second iteration views a negated tensor as another type, which eager PyTorch refuses.
// run: functionalize
graph(%x: f32[2], %i: i64[]) {
  %count: i64[], %y: f32[2], %z: f32[2] = higher_order.while_loop(@more, @step, [%i, %x, %x], [])
  return %y
}

graph @more(%i: i64[], %a: f32[2], %b: f32[2]) {
  %m: bool[] = aten.lt.Scalar(%i, 2)
  return %m
}

graph @step(%i: i64[], %a: f32[2], %b: f32[2]) {
  %n: i64[] = aten.add.Scalar(%i, 1)
  %v: i32[2] = aten.view.dtype(%a, i32)
  %s: i32[2] = aten.neg.default(%v)
  %c: f32[2] = aten.add.Tensor(%b, %s)
  %neg: f32[2] = aten._neg_view.default(%c)
  %d: f32[2] = aten.clone.default(%b)
  return %n, %neg, %d
}

// == functionalize
// error: higher_order.while_loop in a later iteration: torch.Tensor.view is not supported for conjugate view tensors when converting to a different dtype. Please resolve the tensor first (at %v = aten.view.dtype)
