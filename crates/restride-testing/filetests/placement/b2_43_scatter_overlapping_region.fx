// Elements of the source share cells: the kernel writes them in order.
// run: copies, run
graph(%x: f32[4]) {
  %y: f32[4] = aten.mul.Tensor(%x, 2)
  %m: f32[3, 2] = aten.full.default([3, 2], 7.0)
  %z: f32[4] = aten.as_strided_scatter.default(%y, %m, [3, 2], [1, 1], 0)
  return %z
}

// == copies
// %z = aten.as_strided_scatter.default is run, 16 bytes
//   no reason was noted

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[4][1]+0 = [7.0 7.0 7.0 7.0]
