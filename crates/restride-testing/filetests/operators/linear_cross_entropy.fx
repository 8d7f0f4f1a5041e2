// The cross entropy of a linear layer with its gradients, as PyTorch's chunked operator gives them.
// run: run
graph(%x: f32[2, 2], %w: f32[3, 2]) {
  %t: i64[2] = aten.arange.default(2, dtype=i64)
  %l: f32[], %gx: f32[2, 2], %gw: f32[3, 2], %gb: f32[0] = torch_nn._linear_cross_entropy_batch_chunked.default(%x, %w, %t, None, None, "mean", -100, 0.0, 1, "compact", f32, True, True, True, False)
  return %l, %gx, %gw
}
