// The results of meshgrid and broadcast_tensors are views for symbolic sizes too: the write reaches them.
// run: run
// sizes: s0=2
symbol s0 in [2, 9]
graph(%x: f32[s0], %y: f32[s0]) {
  %a: f32[s0, s0][1, 0], %b: f32[s0, s0][0, 1] = aten.meshgrid.default([%x, %y])
  %c: f32[s0], %d: f32[s0] = aten.broadcast_tensors.default([%x, %y])
  %e: f32[s0] = aten.add_.Tensor(%x, 1)
  %f: f32[s0, s0] = aten.mul.Tensor(%a, %b)
  return %f, %a, %c
}

// == run
// input 0: f32[2][1]+0 = [1.0 2.0]
// input 1: f32[2][1]+0 = [0.0 1.0]
// output 0: f32[2, 2][2, 1]+0 = [0.0 1.0 0.0 2.0]
// output 1: f32[2, 2][1, 0]+0 = [1.0 1.0 2.0 2.0], on the storage of input 0
// output 2: f32[2][1]+0 = [1.0 2.0], on the storage of input 0
