// Gradients of a weight that is used twice, as AOTAutograd gives them: the sum of products, transposed or not, is a product with an
// addend. A small sum stays, and so does one whose product is read elsewhere.
// run: place
graph(%x: f32[4, 160], %g: f32[4, 128], %s: f32[4, 8]) {
  %xt: f32[160, 4][1, 160] = aten.t.default(%x)
  %gt: f32[128, 4][1, 128] = aten.t.default(%g)
  %st: f32[8, 4][1, 8] = aten.t.default(%s)
  %first: f32[160, 128] = aten.mm.default(%xt, %g)
  %second: f32[128, 160] = aten.mm.default(%gt, %x)
  %turned: f32[160, 128][1, 160] = aten.t.default(%second)
  %sum: f32[160, 128] = aten.add.Tensor(%first, %turned)
  %third: f32[128, 160] = aten.mm.default(%gt, %x)
  %again: f32[160, 128][1, 160] = aten.t.default(%third)
  %all: f32[160, 128][1, 160] = aten.add.Tensor(%again, %sum)
  %small: f32[8, 8] = aten.mm.default(%st, %s)
  %twice: f32[8, 8] = aten.add.Tensor(%small, %small)
  %fourth: f32[160, 128] = aten.mm.default(%xt, %g)
  %kept: f32[160, 128][1, 160] = aten.add.Tensor(%all, %fourth)
  return %kept, %fourth, %twice
}

// == place
// stage: placed
// arena 163840 bytes, at least 163840 needed, optimal
// buffer buf0: input %x, 2560 bytes
// buffer buf1: input %g, 2048 bytes
// buffer buf2: input %s, 128 bytes
// buffer buf3: arena, 81920 bytes at 0
// buffer buf4: arena, 81920 bytes at 81920
// buffer buf5: output 0, 81920 bytes
// buffer buf6: output 2, 256 bytes
// buffer buf7: output 1, 81920 bytes
//
// graph(%x: f32[4, 160] @ buf0[4, 160], %g: f32[4, 128] @ buf1[4, 128], %s: f32[4, 8] @ buf2[4, 8]) {
//   free %xt @ buf0[160, 4][1, 160] = aten.t.default(%x @ buf0[4, 160])
//   %first @ buf3[160, 128] = aten.mm.default(%xt @ buf0[160, 4][1, 160], %g @ buf1[4, 128])
//   free %gt @ buf1[128, 4][1, 128] = aten.t.default(%g @ buf1[4, 128])
//   free %sum @ buf0[160, 4][1, 160] = aten.t.default(%x @ buf0[4, 160])
//   free %sum_1 @ buf1[4, 128] = aten.t.default(%gt @ buf1[128, 4][1, 128])
//   %sum_2 @ buf4[160, 128] = aten.addmm.default(%first @ buf3[160, 128], %sum @ buf0[160, 4][1, 160], %sum_1 @ buf1[4, 128])
//   free %all @ buf4[128, 160][1, 128] = aten.t.default(%sum_2 @ buf4[160, 128])
//   %all_1 @ buf5[128, 160] = aten.addmm.default(%all @ buf4[128, 160][1, 128], %gt @ buf1[128, 4][1, 128], %x @ buf0[4, 160])
//   free %all_2 @ buf5[160, 128][1, 160] = aten.t.default(%all_1 @ buf5[128, 160])
//   free %st @ buf2[8, 4][1, 8] = aten.t.default(%s @ buf2[4, 8])
//   %small @ buf6[8, 8] = aten.mm.default(%st @ buf2[8, 4][1, 8], %s @ buf2[4, 8])
//   %twice @ buf6[8, 8] = aten.add.Tensor(%small @ buf6[8, 8], %small @ buf6[8, 8])
//   %fourth @ buf7[160, 128] = aten.mm.default(%xt @ buf0[160, 4][1, 160], %g @ buf1[4, 128])
//   %kept @ buf5[160, 128][1, 160] = aten.add.Tensor(%all_2 @ buf5[160, 128][1, 160], %fourth @ buf7[160, 128])
//   return %kept @ buf5[160, 128][1, 160], %fourth @ buf7[160, 128], %twice @ buf6[8, 8]
// }
