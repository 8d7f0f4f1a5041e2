// Numbers rounded to a grid whose scale and zero are learnt: PyTorch takes a zero between whole numbers to the next one.
// run: run
graph(%x: f32[4], %s: f32[1]) {
  %h: f32[1] = aten.mul.Tensor(%s, 0.5)
  %o: f32[1] = aten.add.Tensor(%h, 1)
  %y: f32[4] = aten._fake_quantize_learnable_per_tensor_affine.default(%x, %o, %o, -2, 3)
  %gx: f32[4], %gs: f32[1], %gz: f32[1] = aten._fake_quantize_learnable_per_tensor_affine_backward.default(%x, %x, %o, %o, -2, 3, 0.5)
  return %y, %gx, %gs, %gz
}
