// A diagonal without elements has a stride greater than its offset: as a slice it ends where it starts.
// run: run
graph(%x3: f32[3], %b: f32[1], %c: f32[1]) {
  %x: f32[1, 2]+1 = aten.as_strided.default(%x3, [1, 2], [2, 1], 1)
  %v6: f32[2, 1]+1 = aten.reshape.default(%x, [2, 1])
  %v14: f32[1, 2] = aten.add.Tensor(%x, %b)
  %v15: f32[1, 2] = aten.remainder.Scalar(%v14, 5)
  %v16: f32[1, 2]+1 = aten.copy_.default(%x, %v15)
  %v24: f32[0][3]+1 = aten.diagonal.default(%v16, -1)
  %v25: f32[2, 1]+1 = aten.fill_diagonal_.default(%v6, 3)
  return %v24
}

// == run
// input 0: f32[3][1]+0 = [0.0 3.0 2.0]
// input 1: f32[1][1]+0 = [0.0]
// input 2: f32[1][1]+0 = [0.0]
// output 0: f32[0][3]+1 = [], on the storage of input 0
