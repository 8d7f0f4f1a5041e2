// Repeats whose sum the exporter pinned: how many there are is still found by the run.
// run: run
graph(%x: f32[3], %r: i64[3]) {
  %y: f32[3] = aten.repeat_interleave.self_Tensor(%x, %r, 0)
  %z: f32[3] = aten.mul.Tensor(%y, 2)
  return %z
}

// == run
// input 0: f32[3][1]+0 = [0.0 1.0 2.0]
// input 1: i64[3][1]+0 = [0 1 2]
// output 0: f32[3][1]+0 = [2.0 4.0 4.0]
