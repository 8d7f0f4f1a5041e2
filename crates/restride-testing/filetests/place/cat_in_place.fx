// Operands of a cat are computed where their parts are.
// run: place, remarks
graph(%x: f32[2], %y: f32[3]) {
  %a: f32[2] = aten.neg.default(%x)
  %b: f32[3] = aten.abs.default(%y)
  %c: f32[5] = aten.cat.default([%a, %b])
  %d: f32[5] = aten.mul.Tensor(%c, 2)
  return %d
}

// == place
// stage: placed
// arena 64 bytes, at least 64 needed, optimal
// buffer buf0: input %x, 8 bytes
// buffer buf1: input %y, 12 bytes
// buffer buf2: arena, 20 bytes at 0
// buffer buf3: output 0, 20 bytes
//
// graph(%x: f32[2] @ buf0[2], %y: f32[3] @ buf1[3]) {
//   %a @ buf2[2] = aten.neg.default(%x @ buf0[2])
//   %b @ buf2[3]+2 = aten.abs.default(%y @ buf1[3])
//   free %c @ buf2[5] = aten.cat.default([%a @ buf2[2], %b @ buf2[3]+2])
//   %d @ buf3[5] = aten.mul.Tensor(%c @ buf2[5], 2)
//   return %d @ buf3[5]
// }

// == remarks
// %c = aten.cat.default([%a, %b])
//   `cat` operand computed in place, %a: taken, 8 bytes
// %c = aten.cat.default([%a, %b])
//   `cat` operand computed in place, %b: taken, 12 bytes
// %d = aten.mul.Tensor(%c, 2)
//   computed in the output's memory: taken, 20 bytes
