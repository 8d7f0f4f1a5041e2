// out= into overlapping windows of other sizes: resized first, so that no cell is there twice.
// run: functionalize, run
graph(%x: f32[6], %y: f32[2, 2], %k: f32[2]) {
  %n: f32[2, 2] = aten.neg.default(%y)
  %v1: f32[2, 2][1, 2] = aten.transpose_.default(%y, 0, -1)
  %v2: f32[2] = aten.resize_.default(%y, [2])
  %v3: f32[2, 2][1, 1]+1 = aten.as_strided_.default(%y, [2, 2], [1, 1], 1)
  %v4: f32[2]+1 = aten.mul.Scalar_out(%k, 3, out=%y)
  %s: f32[] = aten.sum.default(%x)
  return %s, %x, %y
}

// == functionalize
// output 0: mutation of %y
// output 2: user as view f32[6] of input %x
// output 3: user as view f32[2]+1 of input %y
// output 4: metadata of %y as view f32[2]+1 of input %y
//
// graph(%x: f32[6], %y: f32[2, 2], %k: f32[2]) {
//   %v4: f32[2] = aten.mul.Scalar(%k, 3)
//   %v4_1: f32[2, 2] = aten.as_strided_scatter.default(%y, %v4, [2], [1], 1)
//   %s: f32[] = aten.sum.default(%x)
//   return %v4_1, %s, %x, %v4, None
// }

// == run
// input 0: f32[6][1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// input 1: f32[2][1]+1 = [0.0 3.0]
// input 2: f32[2][1]+0 = [0.0 1.0]
// output 0: f32[][]+0 = [15.0]
// output 1: f32[6][1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0], on the storage of input 0
// output 2: f32[2][1]+1 = [0.0 3.0], on the storage of input 1
