// An operand that is read later keeps its memory.
// run: place, remarks
graph(%x: f32[8]) {
  %a: f32[8] = aten.neg.default(%x)
  %b: f32[8] = aten.abs.default(%a)
  %c: f32[8] = aten.add.Tensor(%a, %b)
  return %c
}

// == place
// stage: placed
// arena 64 bytes, at least 64 needed, optimal
// buffer buf0: input %x, 32 bytes
// buffer buf1: output 0, 32 bytes
// buffer buf2: arena, 32 bytes at 0
//
// graph(%x: f32[8] @ buf0[8]) {
//   %a @ buf1[8] = aten.neg.default(%x @ buf0[8])
//   %b @ buf2[8] = aten.abs.default(%a @ buf1[8])
//   %c @ buf1[8] = aten.add.Tensor(%a @ buf1[8], %b @ buf2[8])
//   return %c @ buf1[8]
// }

// == remarks
// %b = aten.abs.default(%a)
//   not computed in its operand, %a: still read by %c = aten.add.Tensor(%a, %b), 32 bytes
// %c = aten.add.Tensor(%a, %b)
//   computed in the output's memory: taken, 32 bytes
// %c = aten.add.Tensor(%a, %b)
//   computed in a dying operand, %a: taken, 32 bytes
