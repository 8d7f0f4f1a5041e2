// Views lie on their bases.
// run: place, remarks
graph(%x: f32[2, 3]) {
  %a: f32[2, 3] = aten.neg.default(%x)
  %t: f32[3, 2][1, 3] = aten.t.default(%a)
  %r: f32[2][3]+1 = aten.select.int(%t, 0, 1)
  %c: f32[2] = aten.abs.default(%r)
  return %c
}

// == place
// stage: placed
// arena 64 bytes, at least 64 needed, optimal
// buffer buf0: input %x, 24 bytes
// buffer buf1: arena, 24 bytes at 0
// buffer buf2: output 0, 8 bytes
//
// graph(%x: f32[2, 3] @ buf0[2, 3]) {
//   %a @ buf1[2, 3] = aten.neg.default(%x @ buf0[2, 3])
//   free %r @ buf1[2][3]+1 = aten.select.int(%a @ buf1[2, 3], 1, 1)
//   %c @ buf2[2] = aten.abs.default(%r @ buf1[2][3]+1)
//   return %c @ buf2[2]
// }

// == remarks
// %a = aten.neg.default(%x)
//   not computed in its operand, %x: the caller can see that memory, 24 bytes
// %r = aten.select.int(%a, 1, 1)
//   kept as a view of its base, %a: taken, 8 bytes
// %c = aten.abs.default(%r)
//   computed in the output's memory: taken, 8 bytes
