// The product of one matrix is a copy of it.
// run: run
graph(%x: f32[2, 2]) {
  %y: f32[2, 2] = aten.chain_matmul.default([%x])
  %e: f32[2, 2] = aten.add_.Tensor(%x, 1)
  return %y
}

// == run
// input 0: f32[2, 2][2, 1]+0 = [1.0 2.0 3.0 4.0]
// output 0: f32[2, 2][2, 1]+0 = [0.0 1.0 2.0 3.0]
