// The magnitudes of complex numbers are not left in place.
// run: functionalize, run
graph(%x: c64[3]) {
  %y: c64[3] = aten.abs_.default(%x)
  return %y
}

// == functionalize
// error: In-place abs is not supported for complex tensors. (at %y = aten.abs_.default)

// == run
// error: In-place abs is not supported for complex tensors. (at %y = aten.abs_.default)
