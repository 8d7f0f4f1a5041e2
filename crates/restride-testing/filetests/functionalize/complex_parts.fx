// A write through the imaginary part of a conjugate is negated on its way.
// run: functionalize, run
graph(%a: c64[2]) {
  %x: c64[2] = aten.clone.default(%a)
  %c: c64[2] = aten._conj.default(%x)
  %i: f32[2][2]+1 = aten.imag.default(%c)
  %w: f32[2][2]+1 = aten.fill_.Scalar(%i, 7)
  return %x
}

// == functionalize
// stage: functional
//
// graph(%a: c64[2]) {
//   %x: c64[2] = aten.clone.default(%a)
//   %w: c64[2] = aten.conj_physical.default(%x)
//   %i: f32[2][2]+1 = aten.imag.default(%w)
//   %w_1: f32[2][2]+1 = aten.fill.Scalar(%i, 7)
//   %w_2: f32[2][2]+1 = aten.neg.default(%w_1)
//   %w_3: f32[2, 2] = aten.view_as_real.default(%x)
//   %w_4: f32[4] = aten.view.default(%w_3, [4])
//   %w_5: f32[4] = aten.slice_scatter.default(%w_4, %w_2, 0, 1, 4, 2)
//   %w_6: f32[2, 2] = aten.view.default(%w_5, [2, 2])
//   %w_7: c64[2] = aten.view_as_complex.default(%w_6)
//   return %w_7
// }

// == run
// input 0: c64[2][1]+0 = [(0.0+0.0j) (1.0+0.0j)]
// output 0: c64[2][1]+0 = [(0.0-7.0j) (1.0-7.0j)]
