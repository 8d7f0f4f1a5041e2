// A complex linear map whose magnitudes are returned, after a write through the imaginary part of its input.
// run: functionalize, run
graph(%x: c64[2, 2], %k: c64[3, 2]) {
  %i: f32[2, 2][4, 2]+1 = aten.imag.default(%x)
  %w: f32[2, 2][4, 2]+1 = aten.add_.Tensor(%i, 1)
  %y: c64[2, 3] = aten.linear.default(%x, %k)
  %r: f32[2, 3][6, 2] = aten.real.default(%y)
  %z: f32[2, 3][6, 2] = aten.zero_.default(%r)
  %m: f32[2, 3] = aten.abs.default(%y)
  return %m
}

// == functionalize
// stage: functional
// output 0: mutation of %x
//
// graph(%x: c64[2, 2], %k: c64[3, 2]) {
//   %i: f32[2, 2][4, 2]+1 = aten.imag.default(%x)
//   %w: f32[2, 2][4, 2]+1 = aten.add.Tensor(%i, 1)
//   %w_1: f32[2, 2, 2] = aten.view_as_real.default(%x)
//   %w_2: f32[2, 4] = aten.view.default(%w_1, [2, 4])
//   %w_3: f32[2, 4] = aten.slice_scatter.default(%w_2, %w, 1, 1, 4, 2)
//   %w_4: f32[2, 2, 2] = aten.view.default(%w_3, [2, 2, 2])
//   %w_5: c64[2, 2] = aten.view_as_complex.default(%w_4)
//   %y: c64[2, 3] = aten.linear.default(%w_5, %k)
//   %r: f32[2, 3][6, 2] = aten.real.default(%y)
//   %z: f32[2, 3][6, 2] = aten.zero.default(%r)
//   %z_1: f32[2, 3, 2] = aten.view_as_real.default(%y)
//   %z_2: f32[2, 6] = aten.view.default(%z_1, [2, 6])
//   %z_3: f32[2, 6] = aten.slice_scatter.default(%z_2, %z, 1, 0, 5, 2)
//   %z_4: f32[2, 3, 2] = aten.view.default(%z_3, [2, 3, 2])
//   %z_5: c64[2, 3] = aten.view_as_complex.default(%z_4)
//   %m: f32[2, 3] = aten.abs.default(%z_5)
//   return %w_5, %m
// }

// == run
// input 0: c64[2, 2][2, 1]+0 = [(0.0+1.0j) (1.0+1.0j) (2.0+1.0j) (3.0+1.0j)]
// input 1: c64[3, 2][2, 1]+0 = [(0.0+0.0j) (1.0+0.0j) (2.0+0.0j) (3.0+0.0j) (4.0+0.0j) (5.0+0.0j)]
// output 0: f32[2, 3][3, 1]+0 = [1.0 5.0 9.0 1.0 5.0 9.0]
