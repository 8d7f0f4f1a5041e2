// run: place, run
// Where only the first result of an operator is read, no other is made.
graph(%x: f32[1, 2, 4, 4], %w: f32[2], %b: f32[2], %mean: f32[2], %var: f32[2]) {
  %n: f32[1, 2, 4, 4], %s0: f32[0], %s1: f32[0] = aten._native_batch_norm_legit_no_training.default(%x, %w, %b, %mean, %var, 0.1, 1e-5)
  %p: f32[1, 2, 2, 2], %at: i64[1, 2, 2, 2] = aten.max_pool2d_with_indices.default(%n, [2, 2], [2, 2], [0, 0], [1, 1], False)
  %q: f32[1, 2, 1, 1], %where: i64[1, 2, 1, 1] = aten.max_pool2d_with_indices.default(%p, [2, 2], [2, 2], [0, 0], [1, 1], False)
  return %q, %where
}

// == place
// stage: placed
// arena 576 bytes, at least 576 needed, optimal
// buffer buf0: input %x, 128 bytes
// buffer buf1: input %w, 8 bytes
// buffer buf2: input %b, 8 bytes
// buffer buf3: input %mean, 8 bytes
// buffer buf4: input %var, 8 bytes
// buffer buf5: arena, 128 bytes at 0
// buffer buf6: arena, 128 bytes at 128
// buffer buf7: arena, 32 bytes at 512
// buffer buf8: arena, 384 bytes at 128
// buffer buf9: output 0, 8 bytes
// buffer buf10: output 1, 16 bytes
// buffer buf11: arena, 384 bytes at 0
//
// graph(
//   %x: f32[1, 2, 4, 4] @ buf0[1, 2, 4, 4],
//   %w: f32[2] @ buf1[2],
//   %b: f32[2] @ buf2[2],
//   %mean: f32[2] @ buf3[2],
//   %var: f32[2] @ buf4[2],
// ) {
//   %n @ buf5[1, 2, 4, 4] = aten.batch_norm.default(%x @ buf0[1, 2, 4, 4], %w @ buf1[2], %b @ buf2[2], %mean @ buf3[2], %var @ buf4[2], False, 0.1, 1e-5, False) !scratch buf6
//   %p @ buf7[1, 2, 2, 2] = aten.max_pool2d.default(%n @ buf5[1, 2, 4, 4], [2, 2], [2, 2]) !scratch buf8
//   %q @ buf9[1, 2, 1, 1], %where @ buf10[1, 2, 1, 1] = aten.max_pool2d_with_indices.default(%p @ buf7[1, 2, 2, 2], [2, 2], [2, 2]) !scratch buf11
//   return %q @ buf9[1, 2, 1, 1], %where @ buf10[1, 2, 1, 1]
// }

// == run
// input 0: f32[1, 2, 4, 4][32, 16, 4, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0 18.0 19.0 20.0 21.0 22.0 23.0 24.0 25.0 26.0 27.0 28.0 29.0 30.0 31.0]
// input 1: f32[2][1]+0 = [0.0 1.0]
// input 2: f32[2][1]+0 = [0.0 1.0]
// input 3: f32[2][1]+0 = [0.0 1.0]
// input 4: f32[2][1]+0 = [0.0 1.0]
// output 0: f32[1, 2, 1, 1][2, 1, 1, 1]+0 = [0.0 30.99985122680664]
// output 1: i64[1, 2, 1, 1][2, 1, 1, 1]+0 = [0 3]
