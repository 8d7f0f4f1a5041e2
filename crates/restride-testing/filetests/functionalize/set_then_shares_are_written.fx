// A tensor is set to an input that shares its storage; a write through it is a write of that storage.
// run: functionalize, run
// share: %x %y
graph(%x: f32[6], %y: f32[3]+1, %k: f32[2]) {
  %n: f32[3] = aten.neg.default(%y)
  %v1: f32[6] = aten.set_.source_Tensor(%n, %x)
  %v2: f32[2, 2][3, 1]+1 = aten.as_strided_.default(%x, [2, 2], [3, 1], 1)
  %v3: f32[2, 2][1, 3]+1 = aten.transpose_.default(%x, 0, -1)
  %v4: f32[5]+1 = aten.slice.Tensor(%n, 0, 1, 9)
  %v5: f32[5]+1 = aten.add_.Tensor(%v4, 1)
  %v6: f32[1, 6] = aten.unsqueeze_.default(%n, 0)
  %s: f32[] = aten.sum.default(%x)
  return %s, %y, %x, %n
}

// == functionalize
// stage: functional
// input %storage_x_y: storage of %x, %y
// output 0: mutation of %storage_x_y
// output 2: user as view f32[3]+1 of input %storage_x_y
// output 3: user as view f32[2, 2][1, 3]+1 of input %storage_x_y
// output 4: user as view f32[1, 6] of input %storage_x_y
// output 5: metadata of %x as view f32[2, 2][1, 3]+1 of input %storage_x_y
//
// graph(%x: f32[6], %y: f32[3]+1, %k: f32[2], %storage_x_y: f32[6]) {
//   %v4: f32[5]+1 = aten.slice.Tensor(%storage_x_y, 0, 1, 9)
//   %v5: f32[5]+1 = aten.add.Tensor(%v4, 1)
//   %v5_1: f32[6] = aten.slice_scatter.default(%storage_x_y, %v5, 0, 1, 6)
//   %s: f32[2, 2][1, 3]+1 = aten.as_strided.default(%v5_1, [2, 2], [1, 3], 1)
//   %s_1: f32[] = aten.sum.default(%s)
//   %v: f32[3]+1 = aten.slice.Tensor(%v5_1, 0, 1, 4)
//   %v_1: f32[1, 6] = aten.reshape.default(%v5_1, [1, 6])
//   return %v5_1, %s_1, %v, %s, %v_1, None
// }

// == run
// input 0: f32[2, 2][1, 3]+1 = [2.0 5.0 3.0 6.0]
// input 1: f32[3][1]+1 = [2.0 3.0 4.0], on the storage of input 0
// input 2: f32[2][1]+0 = [0.0 1.0]
// output 0: f32[][]+0 = [16.0]
// output 1: f32[3][1]+1 = [2.0 3.0 4.0], on the storage of input 0
// output 2: f32[2, 2][1, 3]+1 = [2.0 5.0 3.0 6.0], on the storage of input 0
// output 3: f32[1, 6][6, 1]+0 = [0.0 2.0 3.0 4.0 5.0 6.0], on the storage of input 0
