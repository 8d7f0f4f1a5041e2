// A cross product is of vectors of three.
// run: verify
graph(%x: f32[2, 4], %y: f32[2, 4]) {
  %c: f32[2, 4] = aten.linalg_cross.default(%x, %y)
  return %c
}

// == verify
// error: linalg.cross: inputs dimension -1 must have length 3. Got [2, 4] and [2, 4] (at %c = aten.linalg_cross.default)
