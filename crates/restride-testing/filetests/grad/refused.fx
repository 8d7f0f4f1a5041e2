// run: grad
// A loss is one floating number.
graph(%x: f64[4]) {
  %exp: f64[4] = aten.exp.default(%x)
  return %exp
}

// == grad
// error: output.0 is f64[4]; a loss is one floating number; name an output that is one floating number with --loss output.I
