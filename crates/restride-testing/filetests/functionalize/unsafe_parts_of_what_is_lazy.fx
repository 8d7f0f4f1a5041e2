// PyTorch does not know that the parts of `unsafe_split` are views: of what is lazily mapped they are parts of a copy.
// run: functionalize, run
graph(%x: c64[4, 2][1, 4], %y: f32[4]) {
  %c: c64[4, 2][1, 4] = aten.conj.default(%x)
  %a: c64[2, 2][1, 4], %b: c64[2, 2][1, 4]+2 = aten.unsafe_chunk.default(%c, 2)
  %z: c64[2, 2][1, 4] = aten.mul_.Scalar(%a, 3)
  %s: c64[2, 2][1, 2] = aten.add.Scalar(%b, 1)
  %n: f32[4] = aten._neg_view.default(%y)
  %p: f32[2], %q: f32[2]+2 = aten.unsafe_split.Tensor(%n, 2)
  %r: f32[2]+2 = aten.add_.Tensor(%q, %p)
  return %a, %s, %q
}

// == functionalize
// stage: functional
// output 0: user as view c64[2, 2][1, 4] of base 3
// output 2: user as view f32[2]+2 of base 4
// output 3: base
// output 4: base
//
// graph(%x: c64[4, 2][1, 4], %y: f32[4]) {
//   %a: c64[4, 2][1, 4] = aten.conj_physical.default(%x)
//   %a_1: c64[2, 2][1, 4] = aten.slice.Tensor(%a, 0, 0, 2)
//   %z: c64[2, 2][1, 4] = aten.mul.Scalar(%a_1, 3)
//   %z_1: c64[4, 2][1, 4] = aten.slice_scatter.default(%a, %z, 0, 0, 2)
//   %b: c64[2, 2][1, 4]+2 = aten.slice.Tensor(%z_1, 0, 2, 4)
//   %s: c64[2, 2][1, 2] = aten.add.Scalar(%b, 1)
//   %p: f32[4] = aten.neg.default(%y)
//   %q: f32[2]+2 = aten.slice.Tensor(%p, 0, 2, 4)
//   %p_1: f32[2] = aten.slice.Tensor(%p, 0, 0, 2)
//   %r: f32[2]+2 = aten.add.Tensor(%q, %p_1)
//   %r_1: f32[4] = aten.slice_scatter.default(%p, %r, 0, 2, 4)
//   return %z, %s, %r, %z_1, %r_1
// }

// == run
// input 0: c64[4, 2][1, 4]+0 = [(0.0+0.0j) (4.0+0.0j) (1.0+0.0j) (5.0+0.0j) (2.0+0.0j) (6.0+0.0j) (3.0+0.0j) (7.0+0.0j)]
// input 1: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: c64[2, 2][1, 4]+0 = [(0.0+0.0j) (12.0+0.0j) (3.0+0.0j) (15.0+0.0j)]
// output 1: c64[2, 2][1, 2]+0 = [(3.0+0.0j) (7.0+0.0j) (4.0+0.0j) (8.0+0.0j)]
// output 2: f32[2][1]+2 = [-2.0 -4.0]
