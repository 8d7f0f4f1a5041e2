// An input that was resized to more and then to less: its memory has grown all the same.
// run: functionalize, run
// share: %x %y
graph(%x: f32[4], %y: f32[4], %k: f32[2]) {
  %n: f32[4] = aten.neg.default(%y)
  %v1: f32[2, 4] = aten.resize_.default(%y, [2, 4])
  %z1: f32[2, 4] = aten.fill_.Scalar(%y, 1)
  %v2: f32[2] = aten.mul.Scalar_out(%k, 3, out=%y)
  %v3: f32[2][2] = aten.as_strided.default(%y, [2], [2])
  %v4: f32[4] = aten.cat.out([%k, %k], 0, out=%n)
  %v5: f32[2][2] = aten.transpose_.default(%v3, 0, -1)
  %v6: f32[]+3 = aten.select.int(%n, 0, -1)
  %s: f32[] = aten.sum.default(%v6)
  return %s, %y, %n
}

// == functionalize
// stage: functional
// input %storage_x_y: storage of %x, %y
// output 0: mutation of %storage_x_y
// output 2: user as view f32[2] of input %storage_x_y
// output 4: metadata of %y as view f32[2] of input %storage_x_y
// output 5: metadata of %storage_x_y as view f32[8] of input %storage_x_y
//
// graph(%x: f32[4], %y: f32[4], %k: f32[2], %storage_x_y: f32[8]) {
//   %z1: f32[2, 4] = aten.reshape.default(%storage_x_y, [2, 4])
//   %z1_1: f32[2, 4] = aten.fill.Scalar(%z1, 1)
//   %z1_2: f32[8] = aten.reshape.default(%z1_1, [8])
//   %v2: f32[2] = aten.mul.Scalar(%k, 3)
//   %v2_1: f32[8] = aten.slice_scatter.default(%z1_2, %v2, 0, 0, 2)
//   %v4: f32[4] = aten.cat.default([%k, %k])
//   %v6: f32[]+3 = aten.select.int(%v4, 0, -1)
//   %s: f32[] = aten.sum.default(%v6)
//   return %v2_1, %s, %v2, %v4, None, None
// }

// == run
// input 0: f32[4][1]+0 = [0.0 3.0 1.0 1.0]
// input 1: f32[2][1]+0 = [0.0 3.0], on the storage of input 0
// input 2: f32[2][1]+0 = [0.0 1.0]
// output 0: f32[][]+0 = [1.0]
// output 1: f32[2][1]+0 = [0.0 3.0], on the storage of input 0
// output 2: f32[4][1]+0 = [0.0 1.0 0.0 1.0]
