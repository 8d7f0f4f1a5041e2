// A type that is not what the operator gives.
// run: verify
graph(%x: f32[2, 3]) {
  %t: f32[2, 3] = aten.t.default(%x)
  return %t
}

// == verify
// error: %t is f32[2, 3], its rule gives f32[3, 2][1, 3] (at %t = aten.t.default)
