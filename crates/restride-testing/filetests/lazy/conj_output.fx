// An output that is lazily conjugated is given as the elements that it shows.
// run: functionalize, run

graph(%x: c64[4]) {
  %v: c64[4] = aten._conj.default(%x)
  %w: c64[4] = aten.mul_.Tensor(%v, 2)
  return %w
}

// == functionalize
// stage: functional
// output 0: mutation of %x
//
// graph(%x: c64[4]) {
//   %w: c64[4] = aten.conj_physical.default(%x)
//   %w_1: c64[4] = aten.mul.Tensor(%w, 2)
//   %w_2: c64[4] = aten.conj_physical.default(%w_1)
//   return %w_2, %w_1
// }

// == run
// input 0: c64[4][1]+0 = [(0.0-0.0j) (2.0-0.0j) (4.0-0.0j) (6.0-0.0j)]
// output 0: c64[4][1]+0 = [(0.0+0.0j) (2.0+0.0j) (4.0+0.0j) (6.0+0.0j)]
