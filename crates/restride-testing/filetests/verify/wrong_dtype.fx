// An element type that is not what promotion gives.
// run: verify
graph(%x: f32[2], %y: i64[2]) {
  %s: i64[2] = aten.add.Tensor(%x, %y)
  return %s
}

// == verify
// error: %s is i64[2], its rule gives f32[2] (at %s = aten.add.Tensor)
