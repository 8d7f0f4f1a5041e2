// More arguments than the schema has.
// run: verify
graph(%x: f32[2]) {
  %a: f32[2] = aten.neg.default(%x, 1)
  return %a
}

// == verify
// error: line 4, column 37: aten.neg.default takes only 1 arguments, in `%a: f32[2] = aten.neg.default(%x, 1)`
