// Of a value that is read in part alone, the part is computed: a slice of a sum, as the gradient of a cache is read, an index of a
// product, a row of both on each other. What is read elsewhere is computed as a whole, and so is what is small.
// run: place
graph(%x: f32[1, 8, 64, 16], %y: f32[1, 8, 16, 64], %s: f32[], %small: f32[8, 8]) {
  %i: i64[2] = aten.arange.start(40, 42)
  %turned: f32[1, 8, 64, 16][8192, 1024, 1, 64] = aten.transpose.int(%y, -2, -1)
  %sum: f32[1, 8, 64, 16] = aten.add.Tensor(%x, %turned)
  %slice: f32[1, 8, 1, 16][8192, 1024, 16, 1]+272 = aten.slice.Tensor(%sum, 2, 17, 18)
  %written: f32[1, 8, 1, 16] = aten.clone.default(%slice, memory_format=contiguous_format)
  %product: f32[1, 8, 64, 16] = aten.mul.Tensor(%x, %s)
  %indexed: f32[1, 8, 2, 16] = aten.index.Tensor(%product, [None, None, %i])
  %half: f32[1, 8, 64, 16] = aten.mul.Scalar(%x, 0.5)
  %both: f32[1, 8, 64, 16] = aten.sub.Tensor(%half, %x)
  %head: f32[1, 64, 16][8192, 16, 1]+3072 = aten.select.int(%both, 1, 3)
  %copied: f32[1, 64, 16] = aten.clone.default(%head)
  %kept: f32[1, 8, 64, 16] = aten.sin.default(%x)
  %first: f32[1, 64, 16][8192, 16, 1] = aten.select.int(%kept, 1, 0)
  %again: f32[1, 64, 16] = aten.clone.default(%first)
  %twice: f32[8, 8] = aten.add.Tensor(%small, %small)
  %row: f32[8] = aten.select.int(%twice, 0, 0)
  %last: f32[8] = aten.clone.default(%row)
  return %written, %indexed, %copied, %kept, %again, %last
}

// == place
// stage: placed
// arena 256 bytes, at least 256 needed, optimal
// buffer buf0: input %x, 32768 bytes
// buffer buf1: input %y, 32768 bytes
// buffer buf2: input %s, 4 bytes
// buffer buf3: input %small, 256 bytes
// buffer buf4: arena, 16 bytes at 0
// buffer buf5: arena, 64 bytes at 64
// buffer buf6: output 0, 512 bytes
// buffer buf7: output 1, 1024 bytes
// buffer buf8: arena, 192 bytes at 64
// buffer buf9: output 2, 4096 bytes
// buffer buf10: output 3, 32768 bytes
// buffer buf11: arena, 256 bytes at 0
// buffer buf12: output 4, 4096 bytes
// buffer buf13: output 5, 32 bytes
//
// graph(
//   %x: f32[1, 8, 64, 16] @ buf0[1, 8, 64, 16],
//   %y: f32[1, 8, 16, 64] @ buf1[1, 8, 16, 64],
//   %s: f32[] @ buf2[],
//   %small: f32[8, 8] @ buf3[8, 8],
// ) {
//   %i @ buf4[2] = aten.arange.start(40, 42) !scratch buf5
//   free %turned @ buf1[1, 8, 64, 16][8192, 1024, 1, 64] = aten.transpose.int(%y @ buf1[1, 8, 16, 64], -2, -1)
//   free %x_1 @ buf0[1, 8, 1, 16][8192, 1024, 16, 1]+272 = aten.slice.Tensor(%x @ buf0[1, 8, 64, 16], 2, 17, 18)
//   free %turned_1 @ buf1[1, 8, 1, 16][8192, 1024, 1, 64]+17 = aten.slice.Tensor(%turned @ buf1[1, 8, 64, 16][8192, 1024, 1, 64], 2, 17, 18)
//   %sum_1 @ buf6[1, 8, 1, 16] = aten.add.Tensor(%x_1 @ buf0[1, 8, 1, 16][8192, 1024, 16, 1]+272, %turned_1 @ buf1[1, 8, 1, 16][8192, 1024, 1, 64]+17)
//   %x_2 @ buf7[1, 8, 2, 16] = aten.index.Tensor(%x @ buf0[1, 8, 64, 16], [None, None, %i @ buf4[2]]) !scratch buf8
//   %product_1 @ buf7[1, 8, 2, 16] = aten.mul.Tensor(%x_2 @ buf7[1, 8, 2, 16], %s @ buf2[])
//   free %x_3 @ buf0[1, 64, 16][8192, 16, 1]+3072 = aten.select.int(%x @ buf0[1, 8, 64, 16], 1, 3)
//   %half_1 @ buf9[1, 64, 16] = aten.mul.Scalar(%x_3 @ buf0[1, 64, 16][8192, 16, 1]+3072, 0.5)
//   free %x_4 @ buf0[1, 64, 16][8192, 16, 1]+3072 = aten.select.int(%x @ buf0[1, 8, 64, 16], 1, 3)
//   %both_1 @ buf9[1, 64, 16] = aten.sub.Tensor(%half_1 @ buf9[1, 64, 16], %x_4 @ buf0[1, 64, 16][8192, 16, 1]+3072)
//   %kept @ buf10[1, 8, 64, 16] = aten.sin.default(%x @ buf0[1, 8, 64, 16])
//   free %first @ buf10[1, 64, 16][8192, 16, 1] = aten.select.int(%kept @ buf10[1, 8, 64, 16], 1, 0)
//   free %again @ buf10[1, 64, 16][8192, 16, 1] = aten.clone.default(%first @ buf10[1, 64, 16][8192, 16, 1])
//   %twice @ buf11[8, 8] = aten.add.Tensor(%small @ buf3[8, 8], %small @ buf3[8, 8])
//   free %row @ buf11[8] = aten.select.int(%twice @ buf11[8, 8], 0, 0)
//   free %last @ buf11[8] = aten.clone.default(%row @ buf11[8])
//   move %again: buf10[1, 64, 16][8192, 16, 1] -> buf12[1, 64, 16]
//   move %last: buf11[8] -> buf13[8]
//   return %sum_1 @ buf6[1, 8, 1, 16], %product_1 @ buf7[1, 8, 2, 16], %both_1 @ buf9[1, 64, 16], %kept @ buf10[1, 8, 64, 16], %again @ buf10[1, 64, 16][8192, 16, 1], %last @ buf11[8]
// }
