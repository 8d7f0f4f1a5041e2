// A slot of a cache is written in the cache: no copy of the rest, no write-back.
// run: place, remarks, run
graph(%cache: f32[4, 2], %k: f32[2]) {
  %slot: f32[2]+4 = aten.select.int(%cache, 0, 2)
  %w: f32[2]+4 = aten.copy_.default(%slot, %k)
  %s: f32[4, 2] = aten.mul.Tensor(%cache, 2)
  return %s
}

// == place
// stage: placed
// arena 0 bytes, at least 0 needed, optimal
// buffer buf0: input %cache, 32 bytes
// buffer buf1: input %k, 8 bytes
// buffer buf2: output 1, 32 bytes
//
// graph(%cache: f32[4, 2] @ buf0[4, 2], %k: f32[2] @ buf1[2]) {
//   move %k: buf1[2] -> buf0[2]+4
//   free %w @ buf0[4, 2] = aten.select_scatter.default(%cache @ buf0[4, 2], %k @ buf1[2], 0, 2)
//   %s @ buf2[4, 2] = aten.mul.Tensor(%w @ buf0[4, 2], 2)
//   return %w @ buf0[4, 2], %s @ buf2[4, 2]
// }

// == remarks
// %w = aten.select_scatter.default(%cache, %k, 0, 2)
//   source not computed in its region, %k: it is an input, 8 bytes
// %w = aten.select_scatter.default(%cache, %k, 0, 2)
//   scatter written into its base, %cache: taken, 32 bytes
// %s = aten.mul.Tensor(%w, 2)
//   computed in the output's memory: taken, 32 bytes

// == run
// input 0: f32[4, 2][2, 1]+0 = [0.0 1.0 2.0 3.0 0.0 1.0 6.0 7.0]
// input 1: f32[2][1]+0 = [0.0 1.0]
// output 0: f32[4, 2][2, 1]+0 = [0.0 2.0 4.0 6.0 0.0 2.0 12.0 14.0]
