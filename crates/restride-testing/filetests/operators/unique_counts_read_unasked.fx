// Counts that the call does not ask for have no elements; read with the sizes that the exporter wrote they are refused.
// run: run
symbol u0 in [0, 4]
graph(%x: f32[4]) {
  %v: f32[u0], %i: i64[4], %c: i64[u0] = aten.unique_consecutive.default(%x, True, False, 0)
  return %v, %c
}

// == run
// error: %c is i64[0] and is declared as i64[u0] (at %v, %i, %c = aten.unique_consecutive.default)
