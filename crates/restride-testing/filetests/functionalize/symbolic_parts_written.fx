// Every other column, and all but the first row, of symbolic sizes: each element in a cell of its own.
// run: functionalize, run
// sizes: n=5 m=4
symbol n in [2, 64]
symbol m in [2, 64]
graph(%x: f32[n, m]) {
  %a: f32[n, FloorDiv(m + 1, 2)][m, 2] = aten.slice.Tensor(%x, 1, 0, 9223372036854775807, 2)
  %b: f32[n, FloorDiv(m + 1, 2)][m, 2] = aten.add_.Tensor(%a, 3)
  %c: f32[n - 1, m][m, 1]+m = aten.slice.Tensor(%x, 0, 1, 9223372036854775807, 1)
  %e: f32[m, n - 1][1, m]+m = aten.permute.default(%c, [1, 0])
  %f: f32[m, n - 1][1, m]+m = aten.mul_.Scalar(%e, 2)
  return %f
}

// == functionalize
// stage: functional
// symbol m in [2, 64]
// symbol n in [2, 64]
// output 0: mutation of %x
// output 1: user as view f32[m, n + -1][1, m]+m of input %x
//
// graph(%x: f32[n, m]) {
//   %a: f32[n, FloorDiv(m + 1, 2)][m, 2] = aten.slice.Tensor(%x, 1, 0, 9223372036854775807, 2)
//   %b: f32[n, FloorDiv(m + 1, 2)][m, 2] = aten.add.Tensor(%a, 3)
//   %b_1: f32[n, m] = aten.slice_scatter.default(%x, %b, 1, 0, 2*FloorDiv(m + 1, 2) + -1, 2)
//   %c: f32[n + -1, m]+m = aten.slice.Tensor(%b_1, 0, 1, 9223372036854775807)
//   %e: f32[m, n + -1][1, m]+m = aten.permute.default(%c, [1, 0])
//   %f: f32[m, n + -1][1, m]+m = aten.mul.Scalar(%e, 2)
//   %f_1: f32[n + -1, m]+m = aten.permute.default(%f, [1, 0])
//   %f_2: f32[n, m] = aten.slice_scatter.default(%b_1, %f_1, 0, 1, n)
//   return %f_2, %f
// }

// == run
// input 0: f32[5, 4][4, 1]+0 = [3.0 1.0 5.0 3.0 14.0 10.0 18.0 14.0 22.0 18.0 26.0 22.0 30.0 26.0 34.0 30.0 38.0 34.0 42.0 38.0]
// output 0: f32[4, 4][1, 4]+4 = [14.0 22.0 30.0 38.0 10.0 18.0 26.0 34.0 18.0 26.0 34.0 42.0 14.0 22.0 30.0 38.0], on the storage of input 0
