// Numbers rounded to a grid whose scale and zero are learnt: PyTorch takes a zero between whole numbers to the next one.
// run: run
graph(%x: f32[4], %s: f32[1]) {
  %h: f32[1] = aten.mul.Tensor(%s, 0.5)
  %o: f32[1] = aten.add.Tensor(%h, 1)
  %q: f32[1] = aten.add.Tensor(%o, 1.5)
  %y: f32[4] = aten._fake_quantize_learnable_per_tensor_affine.default(%x, %o, %q, -2, 5)
  %gx: f32[4], %gs: f32[1], %gz: f32[1] = aten._fake_quantize_learnable_per_tensor_affine_backward.default(%x, %x, %o, %q, -2, 4, 0.5)
  return %y, %gx, %gs, %gz
}

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// input 1: f32[1][1]+0 = [0.0]
// output 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 1: f32[4][1]+0 = [0.0 1.0 0.0 0.0]
// output 2: f32[1][1]+0 = [2.5]
// output 3: f32[1][1]+0 = [-2.5]
