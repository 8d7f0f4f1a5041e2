// Two calls of `rrelu` that train are two draws; the in-place form writes its slopes too.
// run: functionalize
graph(%x: f32[4], %n: f32[4]) {
  %a: f32[4] = aten.rrelu.default(%x, training=True)
  %b: f32[4] = aten.rrelu.default(%x, training=True)
  %c: f32[4] = aten.rrelu_with_noise_.default(%x, %n, training=True)
  return %a, %b
}
