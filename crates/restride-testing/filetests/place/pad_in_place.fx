// What is padded is made in the middle of its border: alone, padded again, as a part of a cat, and put together itself.
// run: place, copies, run
graph(%x: f32[2, 3], %y: f32[2, 2]) {
  %a: f32[2, 3] = aten.exp.default(%x)
  %b: f32[4, 5] = aten.constant_pad_nd.default(%a, [1, 1, 1, 1], 7)
  %c: f32[4, 5] = aten.neg.default(%b)
  %d: f32[2, 2] = aten.mul.Tensor(%y, %y)
  %e: f32[2, 3] = aten.constant_pad_nd.default(%d, [0, 1])
  %f: f32[3, 3] = aten.constant_pad_nd.default(%e, [0, 0, 1, 0], 2)
  %g: f32[2, 3] = aten.sub.Tensor(%x, 1)
  %h: f32[5, 3] = aten.cat.default([%f, %g])
  %i: f32[6, 4] = aten.constant_pad_nd.default(%h, [1, 0, 0, 1], -1)
  %j: f32[2, 5] = aten.constant_pad_nd.default(%x, [1, 1])
  return %c, %i, %j
}

// == place
// stage: placed
// arena 128 bytes, at least 128 needed, optimal
// buffer buf0: input %x, 24 bytes
// buffer buf1: input %y, 16 bytes
// buffer buf2: output 0, 80 bytes
// buffer buf3: output 1, 96 bytes
// buffer buf4: output 2, 40 bytes
// buffer buf5: arena, 128 bytes at 0
//
// graph(%x: f32[2, 3] @ buf0[2, 3], %y: f32[2, 2] @ buf1[2, 2]) {
//   %b @ buf2[4, 5] = aten.full.default([4, 5], 7, dtype=f32)
//   %a @ buf2[2, 3][5, 1]+6 = aten.exp.default(%x @ buf0[2, 3])
//   free %b_1 @ buf2[4, 5] = aten.as_strided_scatter.default(%b @ buf2[4, 5], %a @ buf2[2, 3][5, 1]+6, [2, 3], [5, 1], 6)
//   %c @ buf2[4, 5] = aten.neg.default(%b_1 @ buf2[4, 5])
//   %i @ buf3[6, 4] = aten.full.default([6, 4], -1, dtype=f32)
//   %f @ buf3[3, 3][4, 1]+1 = aten.full.default([3, 3], 2, dtype=f32)
//   %e @ buf3[2, 3][4, 1]+5 = aten.full.default([2, 3], 0, dtype=f32)
//   %d @ buf3[2, 2][4, 1]+5 = aten.mul.Tensor(%y @ buf1[2, 2], %y @ buf1[2, 2])
//   free %e_1 @ buf3[2, 3][4, 1]+5 = aten.slice_scatter.default(%e @ buf3[2, 3][4, 1]+5, %d @ buf3[2, 2][4, 1]+5, 1, 0, 2)
//   free %f_1 @ buf3[3, 3][4, 1]+1 = aten.slice_scatter.default(%f @ buf3[3, 3][4, 1]+1, %e_1 @ buf3[2, 3][4, 1]+5, 0, 1, 3)
//   %g @ buf3[2, 3][4, 1]+13 = aten.sub.Tensor(%x @ buf0[2, 3], 1)
//   free %h @ buf3[5, 3][4, 1]+1 = aten.cat.default([%f_1 @ buf3[3, 3][4, 1]+1, %g @ buf3[2, 3][4, 1]+13])
//   free %i_1 @ buf3[6, 4] = aten.as_strided_scatter.default(%i @ buf3[6, 4], %h @ buf3[5, 3][4, 1]+1, [5, 3], [4, 1], 1)
//   %j @ buf4[2, 5] = aten.constant_pad_nd.default(%x @ buf0[2, 3], [1, 1]) !scratch buf5
//   return %c @ buf2[4, 5], %i_1 @ buf3[6, 4], %j @ buf4[2, 5]
// }

// == copies
// none

// == run
// input 0: f32[2, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// input 1: f32[2, 2][2, 1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[4, 5][5, 1]+0 = [-7.0 -7.0 -7.0 -7.0 -7.0 -7.0 -1.0 -2.7182817459106445 -7.389056205749512 -7.0 -7.0 -20.08553695678711 -54.59815216064453 -148.4131622314453 -7.0 -7.0 -7.0 -7.0 -7.0 -7.0]
// output 1: f32[6, 4][4, 1]+0 = [-1.0 2.0 2.0 2.0 -1.0 0.0 1.0 0.0 -1.0 4.0 9.0 0.0 -1.0 -1.0 0.0 1.0 -1.0 2.0 3.0 4.0 -1.0 -1.0 -1.0 -1.0]
// output 2: f32[2, 5][5, 1]+0 = [0.0 0.0 1.0 2.0 0.0 0.0 3.0 4.0 5.0 0.0]
