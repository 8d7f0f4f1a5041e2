// Whether two elements lie in one cell is not known without sizes, and a write of them goes in another way then: the
// functional program is made for the sizes of a run.
// run: functionalize, run
// sizes: n=5
symbol n in [2, 64]
graph(%x: f32[n], %y: f32[n, 4]) {
  %e: f32[2, n][0, 1] = aten.expand.default(%x, [2, n])
  %f: f32[2, n][0, 1] = aten.fill_.Scalar(%e, 3)
  %s: f32[n - 1, 2][1, 1] = aten.as_strided.default(%y, [n - 1, 2], [1, 1])
  %t: f32[n - 1, 2][1, 1] = aten.fill_.Scalar(%s, 2)
  return %f
}

// == functionalize
// error: whether aten.fill_.Scalar writes a cell twice depends on sizes that are not known (at %f = aten.fill_.Scalar); give inputs with --inputs so that sizes are known

// == run
// input 0: f32[5][1]+0 = [3.0 3.0 3.0 3.0 3.0]
// input 1: f32[5, 4][4, 1]+0 = [2.0 2.0 2.0 2.0 2.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0 18.0 19.0]
// output 0: f32[2, 5][0, 1]+0 = [3.0 3.0 3.0 3.0 3.0 3.0 3.0 3.0 3.0 3.0], on the storage of input 0
