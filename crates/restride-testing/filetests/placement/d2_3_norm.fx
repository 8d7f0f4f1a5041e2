// A norm over rows.
// run: remarks, copies
graph(%x: f32[2, 4]) {
  %a: f32[2, 4] = aten.mul.Tensor(%x, 2)
  %b: f32[2, 4] = aten.layer_norm.default(%a, [4])
  %d: f32[2, 4] = aten.neg.default(%b)
  return %d
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   result on a dying operand: the caller sees that memory, 32 bytes
// %b = aten.layer_norm.default(%a, [4])
//   result on a dying operand: taken, 32 bytes
// %d = aten.neg.default(%b)
//   computed in the output's memory: taken, 32 bytes

// == copies
// none
