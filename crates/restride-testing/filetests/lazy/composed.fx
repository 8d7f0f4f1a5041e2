// A composition that ends in a lazily conjugated tensor computes the conjugate in a plan.
// run: functionalize, run

graph(%x: f32[4]) {
  %v: c64[4] = aten.fft_ifft.default(%x)
  %a: f32[4] = aten.abs.default(%v)
  return %v, %a
}

// == functionalize
// graph(%x: f32[4]) {
//   %v: c64[4] = aten.fft_ifft.default(%x)
//   %a: f32[4] = aten.abs.default(%v)
//   return %v, %a
// }

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: c64[4][1]+0 = [(1.5-0.0j) (-0.5-0.5j) (-0.5-0.0j) (-0.5+0.5j)]
// output 1: f32[4][1]+0 = [1.5 0.7071067690849304 0.5 0.7071067690849304]
