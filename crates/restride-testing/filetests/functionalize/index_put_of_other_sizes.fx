// run: functionalize, run
// sizes: s0=3 s1=3
// The program does not say that there are as many keys as positions: a run checks it.
symbol s0 in [1, inf]
symbol s1 in [1, inf]
graph(%cache: f32[2, 8, 2], %k: f32[2, s0, 2], %pos: i64[s1]) {
  %w: f32[2, 8, 2] = aten.index_put_.default(%cache, [None, %pos], %k)
  %r: f32[2, 8, 2] = aten.mul.Tensor(%w, 2)
  return %r
}

// == functionalize
// symbol s0 in [1, inf]
// symbol s1 in [1, inf]
// output 0: mutation of %cache
//
// graph(%cache: f32[2, 8, 2], %k: f32[2, s0, 2], %pos: i64[s1]) {
//   %w: f32[2, 8, 2] = aten.index_put.default(%cache, [None, %pos], %k)
//   %r: f32[2, 8, 2] = aten.mul.Tensor(%w, 2)
//   return %w, %r
// }

// == run
// input 0: f32[2, 8, 2][16, 2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 6.0 7.0 8.0 9.0 10.0 11.0 22.0 23.0 24.0 25.0 26.0 27.0 28.0 29.0 30.0 31.0]
// input 1: f32[2, 3, 2][6, 2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0]
// input 2: i64[3][1]+0 = [0 1 2]
// output 0: f32[2, 8, 2][16, 2, 1]+0 = [0.0 2.0 4.0 6.0 8.0 10.0 12.0 14.0 16.0 18.0 20.0 22.0 24.0 26.0 28.0 30.0 12.0 14.0 16.0 18.0 20.0 22.0 44.0 46.0 48.0 50.0 52.0 54.0 56.0 58.0 60.0 62.0]
