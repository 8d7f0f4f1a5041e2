// A convolution with windows of one element of one sample takes the place of its input, fewer channels than those included,
// and a little scratch. Not where the input is read later, where there are more channels than before, of two
// samples, or of other windows.
// run: place, remarks
graph(%x: f32[1, 4, 8, 8], %w: f32[2, 4, 1, 1], %u: f32[2, 2, 1, 1], %b: f32[2], %k: f32[3, 2, 1, 1], %s: f32[2, 2, 3, 3], %d: f32[2, 4, 8, 8]) {
  %a: f32[1, 4, 8, 8] = aten.relu.default(%x)
  %c: f32[1, 2, 8, 8] = aten.conv2d.default(%a, %w, %b)
  %e: f32[1, 2, 8, 8] = aten.conv2d.default(%c, %u)
  %f: f32[1, 2, 8, 8] = aten.conv2d.default(%e, %u)
  %g: f32[1, 2, 8, 8] = aten.add.Tensor(%f, %e)
  %h: f32[1, 3, 8, 8] = aten.conv2d.default(%g, %k)
  %i: f32[1, 2, 6, 6] = aten.conv2d.default(%g, %s)
  %j: f32[2, 4, 8, 8] = aten.neg.default(%d)
  %l: f32[2, 2, 8, 8] = aten.conv2d.default(%j, %w)
  %m: f32[1] = aten.sum.dim_IntList(%h, [1, 2, 3])
  %n: f32[1] = aten.sum.dim_IntList(%i, [1, 2, 3])
  %o: f32[2] = aten.sum.dim_IntList(%l, [1, 2, 3])
  return %m, %n, %o
}

// == place
// stage: placed
// arena 4160 bytes, at least 4160 needed, optimal
// buffer buf0: input %x, 1024 bytes
// buffer buf1: input %w, 32 bytes
// buffer buf2: input %u, 16 bytes
// buffer buf3: input %b, 8 bytes
// buffer buf4: input %k, 24 bytes
// buffer buf5: input %s, 144 bytes
// buffer buf6: input %d, 2048 bytes
// buffer buf7: arena, 1024 bytes at 0
// buffer buf8: arena, 512 bytes at 0
// buffer buf9: arena, 768 bytes at 3072
// buffer buf10: arena, 288 bytes at 3840
// buffer buf11: arena, 2048 bytes at 0
// buffer buf12: arena, 1024 bytes at 2048
// buffer buf13: output 0, 4 bytes
// buffer buf14: output 1, 4 bytes
// buffer buf15: output 2, 8 bytes
//
// graph(
//   %x: f32[1, 4, 8, 8] @ buf0[1, 4, 8, 8],
//   %w: f32[2, 4, 1, 1] @ buf1[2, 4, 1, 1],
//   %u: f32[2, 2, 1, 1] @ buf2[2, 2, 1, 1],
//   %b: f32[2] @ buf3[2],
//   %k: f32[3, 2, 1, 1] @ buf4[3, 2, 1, 1],
//   %s: f32[2, 2, 3, 3] @ buf5[2, 2, 3, 3],
//   %d: f32[2, 4, 8, 8] @ buf6[2, 4, 8, 8],
// ) {
//   %a @ buf7[1, 4, 8, 8] = aten.relu.default(%x @ buf0[1, 4, 8, 8])
//   %c @ buf7[1, 2, 8, 8]+128 = aten.conv2d.default(%a @ buf7[1, 4, 8, 8], %w @ buf1[2, 4, 1, 1], %b @ buf3[2])
//   %e @ buf7[1, 2, 8, 8]+128 = aten.conv2d.default(%c @ buf7[1, 2, 8, 8]+128, %u @ buf2[2, 2, 1, 1])
//   %f @ buf8[1, 2, 8, 8] = aten.conv2d.default(%e @ buf7[1, 2, 8, 8]+128, %u @ buf2[2, 2, 1, 1])
//   %g @ buf8[1, 2, 8, 8] = aten.add.Tensor(%f @ buf8[1, 2, 8, 8], %e @ buf7[1, 2, 8, 8]+128)
//   %h @ buf9[1, 3, 8, 8] = aten.conv2d.default(%g @ buf8[1, 2, 8, 8], %k @ buf4[3, 2, 1, 1])
//   %i @ buf10[1, 2, 6, 6] = aten.conv2d.default(%g @ buf8[1, 2, 8, 8], %s @ buf5[2, 2, 3, 3])
//   %j @ buf11[2, 4, 8, 8] = aten.neg.default(%d @ buf6[2, 4, 8, 8])
//   %l @ buf12[2, 2, 8, 8] = aten.conv2d.default(%j @ buf11[2, 4, 8, 8], %w @ buf1[2, 4, 1, 1])
//   %m @ buf13[1] = aten.sum.dim_IntList(%h @ buf9[1, 3, 8, 8], [1, 2, 3])
//   %n @ buf14[1] = aten.sum.dim_IntList(%i @ buf10[1, 2, 6, 6], [1, 2, 3])
//   %o @ buf15[2] = aten.sum.dim_IntList(%l @ buf12[2, 2, 8, 8], [1, 2, 3])
//   return %m @ buf13[1], %n @ buf14[1], %o @ buf15[2]
// }

// == remarks
// %a = aten.relu.default(%x)
//   not computed in its operand, %x: the caller can see that memory, 1024 bytes
// %c = aten.conv2d.default(%a, %w, %b)
//   computed in a dying operand, %a: taken, 512 bytes
// %e = aten.conv2d.default(%c, %u)
//   computed in a dying operand, %c: taken, 512 bytes
// %f = aten.conv2d.default(%e, %u)
//   not computed in its operand, %e: still read by %g = aten.add.Tensor(%f, %e), 512 bytes
// %g = aten.add.Tensor(%f, %e)
//   computed in a dying operand, %f: taken, 512 bytes
// %j = aten.neg.default(%d)
//   not computed in its operand, %d: the caller can see that memory, 2048 bytes
// %m = aten.sum.dim_IntList(%h, [1, 2, 3])
//   computed in the output's memory: taken, 4 bytes
// %n = aten.sum.dim_IntList(%i, [1, 2, 3])
//   computed in the output's memory: taken, 4 bytes
// %o = aten.sum.dim_IntList(%l, [1, 2, 3])
//   computed in the output's memory: taken, 8 bytes
