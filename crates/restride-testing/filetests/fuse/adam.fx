// run: fuse, place fused, run
// An update of Adam reads and writes each of the parameter and its moments once, in their own memory.
graph(%p: f32[5, 3], %m: f32[5, 3], %v: f32[5, 3], %g: f32[5, 3]) {
  %m1: f32[5, 3] = aten.lerp_.Scalar(%m, %g, 0.1)
  %v1: f32[5, 3] = aten.mul_.Tensor(%v, 0.999)
  %v2: f32[5, 3] = aten.addcmul_.default(%v1, %g, %g, value=0.001)
  %q: f32[5, 3] = aten.sqrt.default(%v2)
  %d: f32[5, 3] = aten.div.Tensor(%q, 0.5)
  %e: f32[5, 3] = aten.add.Tensor(%d, 1e-08)
  %p1: f32[5, 3] = aten.addcdiv_.default(%p, %m1, %e, value=-0.01)
  return %p1
}

// == fuse
// output 0: mutation of %p
// output 1: mutation of %m
// output 2: mutation of %v
// output 3: user as view f32[5, 3] of input %p
//
// graph(%p: f32[5, 3], %m: f32[5, 3], %v: f32[5, 3], %g: f32[5, 3]) {
//   %m1: f32[5, 3], %v2: f32[5, 3], %p1: f32[5, 3] = restride.fused.default(@graph1, [%m, %g, %v, %p])
//   return %p1, %m1, %v2, %p1
// }
//
// graph @graph1(%m: f32[5, 3], %g: f32[5, 3], %v: f32[5, 3], %p: f32[5, 3]) {
//   %m1: f32[5, 3] = aten.lerp.Scalar(%m, %g, 0.1)
//   %v1: f32[5, 3] = aten.mul.Tensor(%v, 0.999)
//   %v2: f32[5, 3] = aten.addcmul.default(%v1, %g, %g, value=0.001)
//   %q: f32[5, 3] = aten.sqrt.default(%v2)
//   %d: f32[5, 3] = aten.div.Tensor(%q, 0.5)
//   %e: f32[5, 3] = aten.add.Tensor(%d, 1e-8)
//   %p1: f32[5, 3] = aten.addcdiv.default(%p, %m1, %e, value=-0.01)
//   return %m1, %v2, %p1
// }

// == place fused
// stage: placed
// arena 0 bytes, at least 0 needed, optimal
// buffer buf0: input %p, 60 bytes
// buffer buf1: input %m, 60 bytes
// buffer buf2: input %v, 60 bytes
// buffer buf3: input %g, 60 bytes
//
// graph(
//   %p: f32[5, 3] @ buf0[5, 3],
//   %m: f32[5, 3] @ buf1[5, 3],
//   %v: f32[5, 3] @ buf2[5, 3],
//   %g: f32[5, 3] @ buf3[5, 3],
// ) {
//   %m1 @ buf1[5, 3], %v2 @ buf2[5, 3], %p1 @ buf0[5, 3] = restride.fused.default(@graph1, [%m @ buf1[5, 3], %g @ buf3[5, 3], %v @ buf2[5, 3], %p @ buf0[5, 3]])
//   return %p1 @ buf0[5, 3], %m1 @ buf1[5, 3], %v2 @ buf2[5, 3], %p1 @ buf0[5, 3]
// }

// == run
// input 0: f32[5, 3][3, 1]+0 = [0.0 0.9950000047683716 1.9929324388504028 2.9913485050201416 3.9900150299072266 4.988842010498047 5.987782955169678 6.986810684204102 7.985907077789307 8.98505973815918 9.984259605407715 10.983499526977539 11.982773780822754 12.98207950592041 13.981411933898926]
// input 1: f32[5, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0]
// input 2: f32[5, 3][3, 1]+0 = [0.0 1.0 2.002000093460083 3.00600004196167 4.01200008392334 5.019999980926514 6.029999732971191 7.041999816894531 8.055999755859375 9.072000503540039 10.09000015258789 11.110000610351563 12.131999969482422 13.156000137329102 14.182000160217285]
// input 3: f32[5, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0]
// output 0: f32[5, 3][3, 1]+0 = [0.0 0.9950000047683716 1.9929324388504028 2.9913485050201416 3.9900150299072266 4.988842010498047 5.987782955169678 6.986810684204102 7.985907077789307 8.98505973815918 9.984259605407715 10.983499526977539 11.982773780822754 12.98207950592041 13.981411933898926], on the storage of input 0
