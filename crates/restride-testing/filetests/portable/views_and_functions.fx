// Operators that return their operand for some calls and compute for others are no reshapes: the conjugates of complex numbers
// and the dropped elements stay.
// run: portable
graph(%x: c64[4, 6], %y: f32[4, 6]) {
  %a: c64[4, 6] = aten.conj_physical.default(%x)
  %b: f32[4, 6] = aten.conj_physical.default(%y)
  %c: f32[4, 6] = aten.dropout.default(%b, 0.5, True)
  %d: f32[4, 6] = aten.to.dtype(%c, f32, False, True)
  return %a, %d
}

// == portable
// stage: functional
//
// graph(%x: c64[4, 6], %y: f32[4, 6]) {
//   %a: c64[4, 6] = aten.conj_physical.default(%x)
//   %c: f32[4, 6] = aten.dropout.default(%y, 0.5, True) !key 2
//   %d_1: f32[4, 6] = aten.clone.default(%c)
//   return %a, %d_1
// }
