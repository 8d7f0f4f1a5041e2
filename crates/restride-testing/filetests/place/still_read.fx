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
// arena 128 bytes, at least 128 needed, optimal
// buffer buf0: input %x, 32 bytes
// buffer buf1: arena, 32 bytes at 0
// buffer buf2: arena, 32 bytes at 64
// buffer buf3: output 0, 32 bytes
//
// graph(%x: f32[8] @ buf0[8]) {
//   %a @ buf1[8] = aten.neg.default(%x @ buf0[8])
//   %b @ buf2[8] = aten.abs.default(%a @ buf1[8])
//   %c @ buf3[8] = aten.add.Tensor(%a @ buf1[8], %b @ buf2[8])
//   return %c @ buf3[8]
// }

// == remarks
// %a = aten.neg.default(%x)
//   result on a dying operand: the caller sees that memory, 32 bytes
// %b = aten.abs.default(%a)
//   result on a dying operand: still read by %c = aten.add.Tensor(%a, %b), 32 bytes
// %c = aten.add.Tensor(%a, %b)
//   computed in the output's memory: taken, 32 bytes
