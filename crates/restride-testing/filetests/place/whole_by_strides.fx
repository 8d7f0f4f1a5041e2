// All of a value seen by strides: it is computed where what comes of the view is an output.
// run: place, run
graph(%x: f32[2, 3]) {
  %t: f32[3, 2][1, 3] = aten.t.default(%x)
  %a: f32[3, 2][1, 3] = aten.add.Tensor(%t, 1)
  %s: f32[3, 2] = aten.as_strided.default(%a, [3, 2], [2, 1], 0)
  %r: f32[3, 2] = aten.neg.default(%s)
  return %r
}
