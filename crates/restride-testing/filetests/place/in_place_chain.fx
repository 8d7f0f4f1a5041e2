// Pointwise results take over operands that die.
// run: place, remarks
graph(%x: f32[8]) {
  %a: f32[8] = aten.neg.default(%x)
  %b: f32[8] = aten.abs.default(%a)
  %c: f32[8] = aten.relu.default(%b)
  return %c
}

// == place
// stage: placed
// arena 0 bytes, at least 0 needed, optimal
// buffer buf0: input %x, 32 bytes
// buffer buf1: output 0, 32 bytes
//
// graph(%x: f32[8] @ buf0[8]) {
//   %a @ buf1[8] = aten.neg.default(%x @ buf0[8])
//   %b @ buf1[8] = aten.abs.default(%a @ buf1[8])
//   %c @ buf1[8] = aten.relu.default(%b @ buf1[8])
//   return %c @ buf1[8]
// }

// == remarks
// %b = aten.abs.default(%a)
//   computed in a dying operand, %a: taken, 32 bytes
// %c = aten.relu.default(%b)
//   computed in the output's memory: taken, 32 bytes
// %c = aten.relu.default(%b)
//   computed in a dying operand, %b: taken, 32 bytes
