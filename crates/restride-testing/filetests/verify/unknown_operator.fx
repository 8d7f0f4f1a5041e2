// An operator that the table does not have.
// run: verify
graph(%x: f32[2]) {
  %a: f32[2] = aten.nag.default(%x)
  return %a
}

// == verify
// error: line 4, column 16: unknown operator `aten.nag.default`, in `%a: f32[2] = aten.nag.default(%x)`
