// Imaginary parts of lazily negated numbers, written: the parts are negated, one by one.
// run: functionalize, run

graph(%x2: c64[2, 3, 3], %index: i64[3]) {
  %v7: c64[2, 3, 3] = aten._neg_view.default(%x2)
  %v13: f32[2, 3, 3][18, 6, 2]+1 = aten.imag.default(%v7)
  %v19: bool[3] = aten.gt.Scalar(%index, 0)
  %v20: f32[2, 3, 3][18, 6, 2]+1 = aten.masked_scatter_.default(%v13, %v19, %v13)
  return %v20
}

// == functionalize
// stage: functional
// output 0: mutation of %x2
//
// graph(%x2: c64[2, 3, 3], %index: i64[3]) {
//   %v19: bool[3] = aten.gt.Scalar(%index, 0)
//   %v20: c64[2, 3, 3] = aten.neg.default(%x2)
//   %v13: f32[2, 3, 3][18, 6, 2]+1 = aten.imag.default(%v20)
//   %v20_1: f32[2, 3, 3][18, 6, 2]+1 = aten.masked_scatter.default(%v13, %v19, %v13)
//   %v20_2: f32[2, 3, 3][18, 6, 2]+1 = aten.neg.default(%v20_1)
//   %v20_3: f32[2, 3, 3, 2] = aten.view_as_real.default(%x2)
//   %v20_4: f32[2, 3, 6] = aten.view.default(%v20_3, [2, 3, 6])
//   %v20_5: f32[2, 3, 6] = aten.slice_scatter.default(%v20_4, %v20_2, 2, 1, 6, 2)
//   %v20_6: f32[2, 3, 3, 2] = aten.view.default(%v20_5, [2, 3, 3, 2])
//   %v20_7: c64[2, 3, 3] = aten.view_as_complex.default(%v20_6)
//   return %v20_7, %v20_1
// }

// == run
// input 0: c64[2, 3, 3][9, 3, 1]+0 = [(0.0+0.0j) (1.0+0.0j) (2.0+0.0j) (3.0+0.0j) (4.0+0.0j) (5.0+0.0j) (6.0+0.0j) (7.0+0.0j) (8.0+0.0j) (9.0+0.0j) (10.0+0.0j) (11.0+0.0j) (12.0+0.0j) (13.0+0.0j) (14.0+0.0j) (15.0+0.0j) (16.0+0.0j) (17.0+0.0j)]
// input 1: i64[3][1]+0 = [0 1 2]
// output 0: f32[2, 3, 3][18, 6, 2]+0 = [-0.0 -0.0 -0.0 -0.0 -0.0 -0.0 -0.0 -0.0 -0.0 -0.0 -0.0 -0.0 -0.0 -0.0 -0.0 -0.0 -0.0 -0.0]
