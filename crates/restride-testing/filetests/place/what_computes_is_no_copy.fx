// Conversions and draws of random numbers write elements, and copy none; what puts together does.
// run: copies
graph(%x: f32[4]) {
  %a: i32[4] = aten.to.dtype(%x, i32)
  %b: f64[4] = aten._to_copy.default(%x, dtype=f64)
  %c: f32[4] = aten.dropout.default(%x, 0.5, True)
  %d: f32[8] = aten.cat.default([%x, %c])
  return %a, %b, %d
}

// == copies
// %x to output 2, for %d = aten.cat.default, 16 bytes
//   `cat` operand not computed in place: it is an input
