// The cross entropy of a linear layer with its gradients, as PyTorch's chunked operator gives them.
// run: run
graph(%x: f32[2, 2], %w: f32[3, 2]) {
  %t: i64[2] = aten.arange.default(2, dtype=i64)
  %l: f32[], %gx: f32[2, 2], %gw: f32[3, 2], %gb: f32[0] = torch_nn._linear_cross_entropy_batch_chunked.default(%x, %w, %t, None, None, "mean", -100, 0.0, 1, "compact", f32, True, True, True, False)
  return %l, %gx, %gw
}

// == run
// input 0: f32[2, 2][2, 1]+0 = [0.0 1.0 2.0 3.0]
// input 1: f32[3, 2][2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// output 0: f32[][]+0 = [7.071488857269287]
// output 1: f32[2, 2][2, 1]+0 = [1.8509371280670166 1.8509371280670166 0.9999545812606812 0.9999546408653259]
// output 2: f32[3, 2][2, 1]+0 = [2.0610599893444714e-9 -0.49206188321113586 -0.9999545812606812 -1.4412766695022583 0.9999545812606812 1.9333385229110718]
