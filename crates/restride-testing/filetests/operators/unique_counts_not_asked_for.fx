// The exporter declares counts that the call does not ask for: nothing reads them, so that they may have no elements.
// run: run
symbol u0 in [0, 4]
graph(%x: f32[4]) {
  %v: f32[u0], %i: i64[4], %c: i64[u0] = aten.unique_consecutive.default(%x, True, False, 0)
  return %v, %i
}

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 1: i64[4][1]+0 = [0 1 2 3]
