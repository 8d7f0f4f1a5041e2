// All of a value seen by strides: it is computed where what comes of the view is an output.
// run: place, run
graph(%x: f32[2, 3]) {
  %t: f32[3, 2][1, 3] = aten.t.default(%x)
  %a: f32[3, 2][1, 3] = aten.add.Tensor(%t, 1)
  %s: f32[3, 2] = aten.as_strided.default(%a, [3, 2], [2, 1], 0)
  %r: f32[3, 2] = aten.neg.default(%s)
  return %r
}

// == place
// stage: placed
// arena 0 bytes, at least 0 needed, optimal
// buffer buf0: input %x, 24 bytes
// buffer buf1: output 0, 24 bytes
//
// graph(%x: f32[2, 3] @ buf0[2, 3]) {
//   free %t @ buf0[3, 2][1, 3] = aten.t.default(%x @ buf0[2, 3])
//   %a @ buf1[3, 2][1, 3] = aten.add.Tensor(%t @ buf0[3, 2][1, 3], 1)
//   free %r @ buf1[3, 2] = aten.as_strided.default(%a @ buf1[3, 2][1, 3], [3, 2], [2, 1], 0)
//   %r_1 @ buf1[3, 2] = aten.neg.default(%r @ buf1[3, 2])
//   return %r_1 @ buf1[3, 2]
// }

// == run
// input 0: f32[2, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// output 0: f32[3, 2][2, 1]+0 = [-1.0 -2.0 -3.0 -4.0 -5.0 -6.0]
