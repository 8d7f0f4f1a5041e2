// Every other column, and a diagonal, of symbolic sizes: each element in a cell of its own.
// run: functionalize, run
// sizes: n=5 m=4
symbol n in [2, 64]
symbol m in [2, 64]
graph(%x: f32[n, m]) {
  %a: f32[n, FloorDiv(m + 1, 2)][m, 2] = aten.slice.Tensor(%x, 1, 0, 9223372036854775807, 2)
  %b: f32[n, FloorDiv(m + 1, 2)][m, 2] = aten.add_.Tensor(%a, 3)
  %c: f32[m - 1, n - 1][1, m]+m+1 = aten.as_strided.default(%x, [m - 1, n - 1], [1, m], m + 1)
  %d: f32[m - 1, n - 1][1, m]+m+1 = aten.mul_.Scalar(%c, 2)
  return %d
}

// == functionalize
// stage: functional
// symbol m in [2, 64]
// symbol n in [2, 64]
// output 0: mutation of %x
// output 1: user as view f32[m + -1, n + -1][1, m]+m + 1 of input %x
//
// graph(%x: f32[n, m]) {
//   %a: f32[n, FloorDiv(m + 1, 2)][m, 2] = aten.slice.Tensor(%x, 1, 0, 9223372036854775807, 2)
//   %b: f32[n, FloorDiv(m + 1, 2)][m, 2] = aten.add.Tensor(%a, 3)
//   %b_1: f32[n, m] = aten.slice_scatter.default(%x, %b, 1, 0, 2*FloorDiv(m + 1, 2) + -1, 2)
//   %d: f32[m + -1, n + -1][1, m]+m + 1 = aten.as_strided.default(%b_1, [m + -1, n + -1], [1, m], m + 1)
//   %d_1: f32[m + -1, n + -1][1, m]+m + 1 = aten.mul.Scalar(%d, 2)
//   %d_2: f32[n, m] = aten.as_strided_scatter.default(%b_1, %d_1, [m + -1, n + -1], [1, m], m + 1)
//   return %d_2, %d_1
// }

// == run
// input 0: f32[5, 4][4, 1]+0 = [3.0 1.0 5.0 3.0 7.0 10.0 18.0 14.0 11.0 18.0 26.0 22.0 15.0 26.0 34.0 30.0 19.0 34.0 42.0 38.0]
// output 0: f32[3, 4][1, 4]+5 = [10.0 18.0 26.0 34.0 18.0 26.0 34.0 42.0 14.0 22.0 30.0 38.0], on the storage of input 0
