// The part of a computed value that a cat takes over at its own place stays where it is: the other parts are written into the value.
// Not so where the value is read later, where the part goes to another place, and where it is the smaller one.
// run: place, copies, run
graph(%x: f32[2, 6], %y: f32[6, 2]) {
  %q: f32[2, 2][6, 1] = aten.slice.Tensor(%x, 1, 0, 2)
  %r: f32[2, 4][6, 1] = aten.slice.Tensor(%x, 1, 0, 4)
  %a: f32[2, 6] = aten.exp.default(%x)
  %a0: f32[2, 1][6, 1] = aten.slice.Tensor(%a, 1, 0, 1)
  %a1: f32[2, 1][6, 1]+1 = aten.slice.Tensor(%a, 1, 1, 2)
  %a2: f32[2, 4][6, 1]+2 = aten.slice.Tensor(%a, 1, 2, 6)
  %b0: f32[2, 1] = aten.mul.Tensor(%a0, %a1)
  %b1: f32[2, 1] = aten.sub.Tensor(%a1, 1)
  %b: f32[2, 6] = aten.cat.default([%b0, %b1, %a2], 1)
  %t: f32[2, 6][1, 2] = aten.t.default(%y)
  %c: f32[2, 6][1, 2] = aten.exp.default(%t)
  %c0: f32[2, 4][1, 2] = aten.slice.Tensor(%c, -1, 0, 4)
  %c1: f32[2, 2][1, 2]+8 = aten.slice.Tensor(%c, -1, 4, 6)
  %c2: f32[2, 2][1, 2] = aten.neg.default(%c1)
  %d: f32[2, 6] = aten.cat.default([%c0, %c2], -1)
  %e: f32[2, 6] = aten.exp.default(%b)
  %e1: f32[2, 4][6, 1]+2 = aten.slice.Tensor(%e, 1, 2, 6)
  %f: f32[2, 6] = aten.cat.default([%q, %e1], 1)
  %g: f32[2, 6] = aten.neg.default(%e)
  %h: f32[2, 6] = aten.exp.default(%d)
  %h1: f32[2, 4][6, 1]+2 = aten.slice.Tensor(%h, 1, 2, 6)
  %i: f32[2, 6] = aten.cat.default([%h1, %q], 1)
  %j: f32[2, 6] = aten.sqrt.default(%x)
  %j1: f32[2, 2][6, 1] = aten.slice.Tensor(%j, 1, 0, 2)
  %k: f32[2, 6] = aten.cat.default([%j1, %r], 1)
  return %b, %d, %f, %g, %i, %k
}

// == place
// stage: placed
// arena 64 bytes, at least 64 needed, optimal
// buffer buf0: input %x, 48 bytes
// buffer buf1: input %y, 48 bytes
// buffer buf2: output 0, 48 bytes
// buffer buf3: output 1, 48 bytes
// buffer buf4: arena, 16 bytes at 0
// buffer buf5: output 3, 48 bytes
// buffer buf6: output 2, 48 bytes
// buffer buf7: arena, 48 bytes at 0
// buffer buf8: output 4, 48 bytes
// buffer buf9: arena, 48 bytes at 0
// buffer buf10: output 5, 48 bytes
//
// graph(%x: f32[2, 6] @ buf0[2, 6], %y: f32[6, 2] @ buf1[6, 2]) {
//   %a @ buf2[2, 6] = aten.exp.default(%x @ buf0[2, 6])
//   free %a0 @ buf2[2, 1][6, 1] = aten.slice.Tensor(%a @ buf2[2, 6], 1, 0, 1)
//   free %a1 @ buf2[2, 1][6, 1]+1 = aten.slice.Tensor(%a @ buf2[2, 6], 1, 1, 2)
//   %b0 @ buf2[2, 1][6, 1] = aten.mul.Tensor(%a0 @ buf2[2, 1][6, 1], %a1 @ buf2[2, 1][6, 1]+1)
//   %b1 @ buf2[2, 1][6, 1]+1 = aten.sub.Tensor(%a1 @ buf2[2, 1][6, 1]+1, 1)
//   free %b @ buf2[2, 6] = aten.slice_scatter.default(%a @ buf2[2, 6], %b0 @ buf2[2, 1][6, 1], 1, 0, 1)
//   free %b_1 @ buf2[2, 6] = aten.slice_scatter.default(%b @ buf2[2, 6], %b1 @ buf2[2, 1][6, 1]+1, 1, 1, 2)
//   free %t @ buf1[2, 6][1, 2] = aten.t.default(%y @ buf1[6, 2])
//   %c @ buf3[2, 6] = aten.exp.default(%t @ buf1[2, 6][1, 2])
//   free %c1 @ buf3[2, 2][6, 1]+4 = aten.slice.Tensor(%c @ buf3[2, 6], -1, 4, 6)
//   %c2 @ buf4[2, 2][1, 2] = aten.neg.default(%c1 @ buf3[2, 2][6, 1]+4)
//   free %d @ buf3[2, 6] = aten.clone.default(%c @ buf3[2, 6])
//   move %c2: buf4[2, 2][1, 2] -> buf3[2, 2][6, 1]+4
//   free %d_1 @ buf3[2, 6] = aten.slice_scatter.default(%d @ buf3[2, 6], %c2 @ buf4[2, 2][1, 2], 1, 4, 6)
//   %e @ buf5[2, 6] = aten.exp.default(%b_1 @ buf2[2, 6])
//   free %q @ buf0[2, 2][6, 1] = aten.slice.Tensor(%x @ buf0[2, 6], 1, 0, 2)
//   free %e1 @ buf5[2, 4][6, 1]+2 = aten.slice.Tensor(%e @ buf5[2, 6], 1, 2, 6)
//   move %q: buf0[2, 2][6, 1] -> buf6[2, 2][6, 1]
//   move %e1: buf5[2, 4][6, 1]+2 -> buf6[2, 4][6, 1]+2
//   free %f @ buf6[2, 6] = aten.cat.default([%q @ buf0[2, 2][6, 1], %e1 @ buf5[2, 4][6, 1]+2], 1)
//   %g @ buf5[2, 6] = aten.neg.default(%e @ buf5[2, 6])
//   %h @ buf7[2, 6] = aten.exp.default(%d_1 @ buf3[2, 6])
//   free %h1 @ buf7[2, 4][6, 1]+2 = aten.slice.Tensor(%h @ buf7[2, 6], 1, 2, 6)
//   move %h1: buf7[2, 4][6, 1]+2 -> buf8[2, 4][6, 1]
//   move %q: buf0[2, 2][6, 1] -> buf8[2, 2][6, 1]+4
//   free %i @ buf8[2, 6] = aten.cat.default([%h1 @ buf7[2, 4][6, 1]+2, %q @ buf0[2, 2][6, 1]], 1)
//   %j @ buf9[2, 6] = aten.sqrt.default(%x @ buf0[2, 6])
//   free %j1 @ buf9[2, 2][6, 1] = aten.slice.Tensor(%j @ buf9[2, 6], 1, 0, 2)
//   free %r @ buf0[2, 4][6, 1] = aten.slice.Tensor(%x @ buf0[2, 6], 1, 0, 4)
//   move %j1: buf9[2, 2][6, 1] -> buf10[2, 2][6, 1]
//   move %r: buf0[2, 4][6, 1] -> buf10[2, 4][6, 1]+2
//   free %k @ buf10[2, 6] = aten.cat.default([%j1 @ buf9[2, 2][6, 1], %r @ buf0[2, 4][6, 1]], 1)
//   return %b_1 @ buf2[2, 6], %d_1 @ buf3[2, 6], %f @ buf6[2, 6], %g @ buf5[2, 6], %i @ buf8[2, 6], %k @ buf10[2, 6]
// }

// == copies
// %e1 to output 2, for %f = aten.cat.default, 32 bytes
//   `cat` operand not computed in place: it is stored elsewhere already
// %h1 to output 4, for %i = aten.cat.default, 32 bytes
//   `cat` operand not computed in place: it is stored elsewhere already
// %r to output 5, for %k = aten.cat.default, 32 bytes
//   `cat` operand not computed in place: it is stored elsewhere already
// %c2 to output 1, for %d_1 = aten.slice_scatter.default, 16 bytes
//   source not computed in its region: it is stored elsewhere already
// %q to output 2, for %f = aten.cat.default, 16 bytes
//   `cat` operand not computed in place: it is stored elsewhere already
// %q to output 4, for %i = aten.cat.default, 16 bytes
//   `cat` operand not computed in place: it is stored elsewhere already
// %j1 to output 5, for %k = aten.cat.default, 16 bytes
//   `cat` operand not computed in place: it is stored elsewhere already

// == run
// input 0: f32[2, 6][6, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0]
// input 1: f32[6, 2][2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0]
// output 0: f32[2, 6][6, 1]+0 = [2.7182817459106445 1.7182817459106445 7.389056205749512 20.08553695678711 54.59815216064453 148.4131622314453 442413.40625 1095.6331787109375 2980.9580078125 8103.083984375 22026.46484375 59874.140625]
// output 1: f32[2, 6][6, 1]+0 = [1.0 7.389056205749512 54.59815216064453 403.4288024902344 -2980.9580078125 -22026.46484375 2.7182817459106445 20.08553695678711 148.4131622314453 1096.6331787109375 -8103.083984375 -59874.140625]
// output 2: f32[2, 6][6, 1]+0 = [0.0 1.0 1618.17822265625 528491328.0 5.148446639295615e23 inf 6.0 7.0 inf inf inf inf]
// output 3: f32[2, 6][6, 1]+0 = [-15.154260635375977 -5.574941158294678 -1618.17822265625 -528491328.0 -5.148446639295615e23 -inf -inf -inf -inf -inf -inf -inf]
// output 4: f32[2, 6][6, 1]+0 = [5.148446639295615e23 inf 0.0 0.0 0.0 1.0 inf inf 0.0 0.0 6.0 7.0]
// output 5: f32[2, 6][6, 1]+0 = [0.0 1.0 0.0 1.0 2.0 3.0 2.4494898319244385 2.6457512378692627 6.0 7.0 8.0 9.0]
