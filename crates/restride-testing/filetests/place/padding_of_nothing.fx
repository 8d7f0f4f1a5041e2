// run: place, copies, run
// What is padded by nothing is there already.
graph(%x: f32[2, 3]) {
  %a: f32[2, 3] = aten.neg.default(%x)
  %p: f32[2, 3] = aten.constant_pad_nd.default(%a, [0, 0, 0, 0])
  %y: f32[2, 3] = aten.flip.default(%p, [0])
  return %y
}

// == place
// stage: placed
// arena 64 bytes, at least 64 needed, optimal
// buffer buf0: input %x, 24 bytes
// buffer buf1: arena, 24 bytes at 0
// buffer buf2: output 0, 24 bytes
//
// graph(%x: f32[2, 3] @ buf0[2, 3]) {
//   %a @ buf1[2, 3] = aten.neg.default(%x @ buf0[2, 3])
//   free %p @ buf1[2, 3] = aten.clone.default(%a @ buf1[2, 3])
//   %y @ buf2[2, 3] = aten.flip.default(%p @ buf1[2, 3], [0])
//   return %y @ buf2[2, 3]
// }

// == copies
// none

// == run
// input 0: f32[2, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// output 0: f32[2, 3][3, 1]+0 = [-3.0 -4.0 -5.0 -0.0 -1.0 -2.0]
