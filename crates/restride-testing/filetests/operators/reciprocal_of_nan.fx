// The reciprocal of a complex number with a NaN in one part is NaN in both.
// run: run
graph(%x: f64[2]) {
  %log: f64[2] = aten.log.default(%x)
  %zero: f64[2] = aten.mul.Tensor(%x, 0)
  %nan: f64[2] = aten.mul.Tensor(%log, %zero)
  %z: c128[2] = aten.complex.default(%nan, %zero)
  %w: c128[2] = aten.complex.default(%zero, %nan)
  %a: c128[2] = aten.reciprocal.default(%z)
  %b: c128[2] = aten.reciprocal.default(%w)
  return %a, %b
}

// == run
// input 0: f64[2][1]+0 = [0.0 1.0]
// output 0: c128[2][1]+0 = [(NaNNaNj) (infNaNj)]
// output 1: c128[2][1]+0 = [(NaNNaNj) (infNaNj)]
