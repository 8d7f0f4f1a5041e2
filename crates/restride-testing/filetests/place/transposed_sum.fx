// x + x.t() must not be computed in x.
// run: place, remarks, run
graph(%a: f32[3, 3]) {
  %x: f32[3, 3] = aten.mul.Tensor(%a, 2)
  %t: f32[3, 3][1, 3] = aten.t.default(%x)
  %s: f32[3, 3] = aten.add.Tensor(%x, %t)
  return %s
}

// == place
// stage: placed
// arena 64 bytes, at least 64 needed, optimal
// buffer buf0: input %a, 36 bytes
// buffer buf1: arena, 36 bytes at 0
// buffer buf2: output 0, 36 bytes
//
// graph(%a: f32[3, 3] @ buf0[3, 3]) {
//   %x @ buf1[3, 3] = aten.mul.Tensor(%a @ buf0[3, 3], 2)
//   free %t @ buf1[3, 3][1, 3] = aten.t.default(%x @ buf1[3, 3])
//   %s @ buf2[3, 3] = aten.add.Tensor(%x @ buf1[3, 3], %t @ buf1[3, 3][1, 3])
//   return %s @ buf2[3, 3]
// }

// == remarks
// %t = aten.t.default(%x)
//   kept as a view of its base, %x: taken, 36 bytes
// %s = aten.add.Tensor(%x, %t)
//   computed in the output's memory: taken, 36 bytes

// == run
// input 0: f32[3, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0]
// output 0: f32[3, 3][3, 1]+0 = [0.0 8.0 16.0 8.0 16.0 24.0 16.0 24.0 32.0]
