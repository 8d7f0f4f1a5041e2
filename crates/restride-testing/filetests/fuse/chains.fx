// run: fuse, place fused, run
// A chain of pointwise operators is one node. What is returned of it is written, what only the chain reads is not; the result takes over
// the memory of an operand that no later call of the body reads.
graph(%x: f32[4, 6], %w: f32[6], %b: f32[]) {
  %m: f32[4, 6] = aten.mul.Tensor(%x, %w)
  %a: f32[4, 6] = aten.add.Tensor(%m, %b)
  %s: f32[4, 6] = aten.sigmoid.default(%a)
  %y: f32[4, 6] = aten.mul.Tensor(%a, %s)
  %z: f32[4, 6] = aten.sub.Tensor(%y, %x)
  return %a, %z
}

// == fuse
// graph(%x: f32[4, 6], %w: f32[6], %b: f32[]) {
//   %a: f32[4, 6], %z: f32[4, 6] = restride.fused.default(@graph1, [%x, %w, %b])
//   return %a, %z
// }
//
// graph @graph1(%x: f32[4, 6], %w: f32[6], %b: f32[]) {
//   %m: f32[4, 6] = aten.mul.Tensor(%x, %w)
//   %a: f32[4, 6] = aten.add.Tensor(%m, %b)
//   %s: f32[4, 6] = aten.sigmoid.default(%a)
//   %y: f32[4, 6] = aten.mul.Tensor(%a, %s)
//   %z: f32[4, 6] = aten.sub.Tensor(%y, %x)
//   return %a, %z
// }

// == place fused
// stage: placed
// arena 0 bytes, at least 0 needed, optimal
// buffer buf0: input %x, 96 bytes
// buffer buf1: input %w, 24 bytes
// buffer buf2: input %b, 4 bytes
// buffer buf3: output 0, 96 bytes
// buffer buf4: output 1, 96 bytes
//
// graph(%x: f32[4, 6] @ buf0[4, 6], %w: f32[6] @ buf1[6], %b: f32[] @ buf2[]) {
//   %a @ buf3[4, 6], %z @ buf4[4, 6] = restride.fused.default(@graph1, [%x @ buf0[4, 6], %w @ buf1[6], %b @ buf2[]])
//   return %a @ buf3[4, 6], %z @ buf4[4, 6]
// }

// == run
// input 0: f32[4, 6][6, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0 18.0 19.0 20.0 21.0 22.0 23.0]
// input 1: f32[6][1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// input 2: f32[][]+0 = [0.0]
// output 0: f32[4, 6][6, 1]+0 = [0.0 1.0 4.0 9.0 16.0 25.0 0.0 7.0 16.0 27.0 40.0 55.0 0.0 13.0 28.0 45.0 64.0 85.0 0.0 19.0 40.0 63.0 88.0 115.0]
// output 1: f32[4, 6][6, 1]+0 = [0.0 -0.26894140243530273 1.9280550479888916 5.998889923095703 11.999998092651367 20.0 -6.0 -0.006377220153808594 7.999998092651367 18.0 30.0 44.0 -12.0 -2.956390380859375e-5 14.0 30.0 48.0 68.0 -18.0 0.0 20.0 42.0 66.0 92.0]
