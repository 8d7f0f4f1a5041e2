// A result gets the layout that its readers' kernels prefer, where that spares bytes: %a is read by `im2col` through a
// permutation, and is computed so that this is row-major. Not where the caller gets it too, nor where the kernel that makes it
// would have to put it in order itself.
// run: place, remarks, run
graph(%x: f32[2, 3, 2, 4], %y: f32[2, 3, 2, 4], %u: f32[3, 3, 1, 1]) {
  %a: f32[2, 3, 2, 4] = aten.sub.Tensor(%x, %y)
  %p: f32[2, 2, 3, 4][24, 4, 8, 1] = aten.permute.default(%a, [0, 2, 1, 3])
  %c: f32[2, 4, 9] = aten.im2col.default(%p, [1, 2], [1, 1], [0, 0], [1, 1])
  %s: f32[2] = aten.sum.dim_IntList(%c, [1, 2])
  %b: f32[2, 3, 2, 4] = aten.mul.Tensor(%x, %y)
  %q: f32[2, 2, 3, 4][24, 4, 8, 1] = aten.permute.default(%b, [0, 2, 1, 3])
  %d: f32[2, 4, 9] = aten.im2col.default(%q, [1, 2], [1, 1], [0, 0], [1, 1])
  %t: f32[2] = aten.sum.dim_IntList(%d, [1, 2])
  %e: f32[2, 3, 2, 4] = aten.conv2d.default(%x, %u)
  %r: f32[2, 2, 3, 4][24, 4, 8, 1] = aten.permute.default(%e, [0, 2, 1, 3])
  %f: f32[2, 4, 9] = aten.im2col.default(%r, [1, 2], [1, 1], [0, 0], [1, 1])
  %v: f32[2] = aten.sum.dim_IntList(%f, [1, 2])
  return %s, %t, %v, %b
}

// == place
// stage: placed
// arena 704 bytes, at least 704 needed, optimal
// buffer buf0: input %x, 192 bytes
// buffer buf1: input %y, 192 bytes
// buffer buf2: input %u, 36 bytes
// buffer buf3: arena, 192 bytes at 0
// buffer buf4: arena, 288 bytes at 192
// buffer buf5: output 0, 8 bytes
// buffer buf6: output 3, 192 bytes
// buffer buf7: arena, 288 bytes at 0
// buffer buf8: arena, 192 bytes at 320
// buffer buf9: output 1, 8 bytes
// buffer buf10: arena, 192 bytes at 0
// buffer buf11: arena, 288 bytes at 192
// buffer buf12: arena, 192 bytes at 512
// buffer buf13: output 2, 8 bytes
//
// graph(
//   %x: f32[2, 3, 2, 4] @ buf0[2, 3, 2, 4],
//   %y: f32[2, 3, 2, 4] @ buf1[2, 3, 2, 4],
//   %u: f32[3, 3, 1, 1] @ buf2[3, 3, 1, 1],
// ) {
//   %a @ buf3[2, 3, 2, 4][24, 4, 12, 1] = aten.sub.Tensor(%x @ buf0[2, 3, 2, 4], %y @ buf1[2, 3, 2, 4])
//   free %p @ buf3[2, 2, 3, 4] = aten.permute.default(%a @ buf3[2, 3, 2, 4][24, 4, 12, 1], [0, 2, 1, 3])
//   %c @ buf4[2, 4, 9] = aten.im2col.default(%p @ buf3[2, 2, 3, 4], [1, 2], [1, 1], [0, 0], [1, 1])
//   %s @ buf5[2] = aten.sum.dim_IntList(%c @ buf4[2, 4, 9], [1, 2])
//   %b @ buf6[2, 3, 2, 4] = aten.mul.Tensor(%x @ buf0[2, 3, 2, 4], %y @ buf1[2, 3, 2, 4])
//   free %q @ buf6[2, 2, 3, 4][24, 4, 8, 1] = aten.permute.default(%b @ buf6[2, 3, 2, 4], [0, 2, 1, 3])
//   %d @ buf7[2, 4, 9] = aten.im2col.default(%q @ buf6[2, 2, 3, 4][24, 4, 8, 1], [1, 2], [1, 1], [0, 0], [1, 1]) !scratch buf8
//   %t @ buf9[2] = aten.sum.dim_IntList(%d @ buf7[2, 4, 9], [1, 2])
//   %e @ buf10[2, 3, 2, 4] = aten.conv2d.default(%x @ buf0[2, 3, 2, 4], %u @ buf2[3, 3, 1, 1])
//   free %r @ buf10[2, 2, 3, 4][24, 4, 8, 1] = aten.permute.default(%e @ buf10[2, 3, 2, 4], [0, 2, 1, 3])
//   %f @ buf11[2, 4, 9] = aten.im2col.default(%r @ buf10[2, 2, 3, 4][24, 4, 8, 1], [1, 2], [1, 1], [0, 0], [1, 1]) !scratch buf12
//   %v @ buf13[2] = aten.sum.dim_IntList(%f @ buf11[2, 4, 9], [1, 2])
//   return %s @ buf5[2], %t @ buf9[2], %v @ buf13[2], %b @ buf6[2, 3, 2, 4]
// }

// == remarks
// %a = aten.sub.Tensor(%x, %y)
//   not computed in its operand, %x: the caller can see that memory, 192 bytes
// %a = aten.sub.Tensor(%x, %y)
//   layout chosen for its readers: taken, 192 bytes
// %p = aten.permute.default(%a, [0, 2, 1, 3])
//   kept as a view of its base, %a: taken, 192 bytes
// %s = aten.sum.dim_IntList(%c, [1, 2])
//   computed in the output's memory: taken, 8 bytes
// %b = aten.mul.Tensor(%x, %y)
//   computed in the output's memory: taken, 192 bytes
// %q = aten.permute.default(%b, [0, 2, 1, 3])
//   kept as a view of its base, %b: taken, 192 bytes
// %t = aten.sum.dim_IntList(%d, [1, 2])
//   computed in the output's memory: taken, 8 bytes
// %r = aten.permute.default(%e, [0, 2, 1, 3])
//   kept as a view of its base, %e: taken, 192 bytes
// %v = aten.sum.dim_IntList(%f, [1, 2])
//   computed in the output's memory: taken, 8 bytes

// == run
// input 0: f32[2, 3, 2, 4][24, 8, 4, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0 18.0 19.0 20.0 21.0 22.0 23.0 24.0 25.0 26.0 27.0 28.0 29.0 30.0 31.0 32.0 33.0 34.0 35.0 36.0 37.0 38.0 39.0 40.0 41.0 42.0 43.0 44.0 45.0 46.0 47.0]
// input 1: f32[2, 3, 2, 4][24, 8, 4, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0 18.0 19.0 20.0 21.0 22.0 23.0 24.0 25.0 26.0 27.0 28.0 29.0 30.0 31.0 32.0 33.0 34.0 35.0 36.0 37.0 38.0 39.0 40.0 41.0 42.0 43.0 44.0 45.0 46.0 47.0]
// input 2: f32[3, 3, 1, 1][3, 1, 1, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0]
// output 0: f32[2][1]+0 = [0.0 0.0]
// output 1: f32[2][1]+0 = [6474.0 47082.0]
// output 2: f32[2][1]+0 = [5544.0 15912.0]
// output 3: f32[2, 3, 2, 4][24, 8, 4, 1]+0 = [0.0 1.0 4.0 9.0 16.0 25.0 36.0 49.0 64.0 81.0 100.0 121.0 144.0 169.0 196.0 225.0 256.0 289.0 324.0 361.0 400.0 441.0 484.0 529.0 576.0 625.0 676.0 729.0 784.0 841.0 900.0 961.0 1024.0 1089.0 1156.0 1225.0 1296.0 1369.0 1444.0 1521.0 1600.0 1681.0 1764.0 1849.0 1936.0 2025.0 2116.0 2209.0]
