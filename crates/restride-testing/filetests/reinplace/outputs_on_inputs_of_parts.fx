// Outputs that lie on an input's memory as numbers of another size; complex numbers are conjugated into memory of their own.
// run: reinplace, run
graph(%x: c64[3], %z: c64[2, 2]) {
  %c: c64[3] = aten._conj.default(%x)
  %y: f32[3, 2] = aten.view_as_real.default(%x)
  %w: c64[3] = aten.copy_.default(%c, %x)
  %r: f32[2, 2][4, 2]+1 = aten.imag.default(%z)
  %g: c64[2, 2] = aten.flip.default(%z, [0])
  %v: c64[2, 2] = aten.copy_.default(%z, %g)
  return %y, %r
}

// == reinplace
// graph(%x: c64[3], %z: c64[2, 2]) {
//   %w_1: c64[3] = aten.conj_physical.default(%x)
//   %g: c64[2, 2] = aten.flip.default(%z, [0])
//   %write_back: c64[3] = aten.copy_.default(%x, %w_1)
//   %write_back_1: c64[2, 2] = aten.copy_.default(%z, %g)
//   %x_view: c64[1] = aten.as_strided.default(%x, [1], [1], 0)
//   %x_view_1: f32[2] = aten.view.dtype(%x_view, f32)
//   %x_view_2: f32[3, 2] = aten.as_strided.default(%x_view_1, [3, 2], [2, 1], 0)
//   %z_view: c64[1] = aten.as_strided.default(%z, [1], [1], 0)
//   %z_view_1: f32[2] = aten.view.dtype(%z_view, f32)
//   %z_view_2: f32[2, 2][4, 2]+1 = aten.as_strided.default(%z_view_1, [2, 2], [4, 2], 1)
//   return %x_view_2, %z_view_2
// }

// == run
// input 0: c64[3][1]+0 = [(0.0-0.0j) (1.0-0.0j) (2.0-0.0j)]
// input 1: c64[2, 2][2, 1]+0 = [(2.0+0.0j) (3.0+0.0j) (0.0+0.0j) (1.0+0.0j)]
// output 0: f32[3, 2][2, 1]+0 = [0.0 -0.0 1.0 -0.0 2.0 -0.0], on the storage of input 0
// output 1: f32[2, 2][4, 2]+1 = [0.0 0.0 0.0 0.0], on the storage of input 1
