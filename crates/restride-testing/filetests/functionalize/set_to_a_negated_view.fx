// An input that is set to a lazily negated view takes over its memory, not its negation.
// run: functionalize, run
graph(%x: c64[3], %o: f32[3]) {
  %c: c64[3] = aten.conj.default(%x)
  %i: f32[3][2]+1 = aten.imag.default(%c)
  %r: f32[3][2]+1 = aten.add.out(%o, 1, out=%i)
  %s: f32[3][2]+1 = aten.set_.source_Tensor(%o, %i)
  return %x
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: user as view c64[3] of input %x
// output 2: metadata of %o as view f32[3][2]+1 of input %x
//
// graph(%x: c64[3], %o: f32[3]) {
//   %r: f32[3][2]+1 = aten.add.Tensor(%o, 1)
//   %r_1: f32[3][2]+1 = aten.neg.default(%r)
//   %r_2: f32[3, 2] = aten.view_as_real.default(%x)
//   %r_3: f32[6] = aten.view.default(%r_2, [6])
//   %r_4: f32[6] = aten.slice_scatter.default(%r_3, %r_1, 0, 1, 6, 2)
//   %r_5: f32[3, 2] = aten.view.default(%r_4, [3, 2])
//   %r_6: c64[3] = aten.view_as_complex.default(%r_5)
//   return %r_6, %r_6, None
// }

// == run
// input 0: c64[3][1]+0 = [(0.0-1.0j) (1.0-2.0j) (2.0-3.0j)]
// input 1: f32[3][2]+1 = [-1.0 -2.0 -3.0], on the storage of input 0
// output 0: c64[3][1]+0 = [(0.0-1.0j) (1.0-2.0j) (2.0-3.0j)], on the storage of input 0
