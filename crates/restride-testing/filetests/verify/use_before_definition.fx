// A value that is used before it is made.
// run: verify
graph(%x: f32[2]) {
  %a: f32[2] = aten.neg.default(%b)
  %b: f32[2] = aten.neg.default(%x)
  return %a
}

// == verify
// error: line 4, column 33: %b is not defined before this, in `%a: f32[2] = aten.neg.default(%b)`
