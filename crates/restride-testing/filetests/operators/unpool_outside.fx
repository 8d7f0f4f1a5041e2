// Places outside of the plane are refused before anything is returned.
// run: run
graph(%x: f32[1, 2, 3], %i: i64[1, 2, 3]) {
  %u: f32[1, 1, 4] = aten.max_unpool2d.default(%x, %i, [1, 4])
  return %u
}

// == run
// error: index 4 is out of bounds for dimension 1 with size 4 (at %u = aten.max_unpool2d.default)
