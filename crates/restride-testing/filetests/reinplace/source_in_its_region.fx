// The source of a scatter is computed in the region of its base, unless the base is read in between.
// run: functionalize, reinplace, views, run
graph(%x: f32[2], %y: f32[4], %z: f32[4]) {
  %s: f32[2] = aten.add.Tensor(%x, %x)
  %r: f32[2]+1 = aten.slice.Tensor(%y, 0, 1, 3)
  %w: f32[2]+1 = aten.copy_.default(%r, %s)
  %t: f32[2] = aten.mul.Tensor(%x, %x)
  %n: f32[4] = aten.exp.default(%z)
  %q: f32[2] = aten.slice.Tensor(%z, 0, 0, 2)
  %v: f32[2] = aten.copy_.default(%q, %t)
  return %n
}

// == functionalize
// output 0: mutation of %y
// output 1: mutation of %z
//
// graph(%x: f32[2], %y: f32[4], %z: f32[4]) {
//   %s: f32[2] = aten.add.Tensor(%x, %x)
//   %w: f32[4] = aten.slice_scatter.default(%y, %s, 0, 1, 3)
//   %t: f32[2] = aten.mul.Tensor(%x, %x)
//   %n: f32[4] = aten.exp.default(%z)
//   %v: f32[4] = aten.slice_scatter.default(%z, %t, 0, 0, 2)
//   return %w, %v, %n
// }

// == reinplace
// graph(%x: f32[2], %y: f32[4], %z: f32[4]) {
//   %w_region: f32[2]+1 = aten.slice.Tensor(%y, 0, 1, 3)
//   %s: f32[2]+1 = aten.add.out(%x, %x, out=%w_region)
//   %t: f32[2] = aten.mul.Tensor(%x, %x)
//   %n: f32[4] = aten.exp.default(%z)
//   %v_region: f32[2] = aten.slice.Tensor(%z, 0, 0, 2)
//   %v_region_1: f32[2] = aten.copy_.default(%v_region, %t)
//   return %n
// }

// == views
// output 0: mutation of %y
// output 1: mutation of %z
//
// graph(%x: f32[2], %y: f32[4], %z: f32[4]) {
//   %s: f32[2] = aten.add.Tensor(%x, %x)
//   %w: f32[4] = aten.slice_scatter.default(%y, %s, 0, 1, 3)
//   %t: f32[2] = aten.mul.Tensor(%x, %x)
//   %n: f32[4] = aten.exp.default(%z)
//   %v: f32[4] = aten.slice_scatter.default(%z, %t, 0, 0, 2)
//   return %w, %v, %n
// }

// == run
// input 0: f32[2][1]+0 = [0.0 1.0]
// input 1: f32[4][1]+0 = [0.0 0.0 2.0 3.0]
// input 2: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[4][1]+0 = [1.0 2.7182817459106445 7.389056205749512 20.08553695678711]
